#!/usr/bin/env bash
# NEEDS torch
# kill -9 of all ranks at random moments loses at most the point that was running; --resume finishes the study.
# KILLS: how often (default 8).
set -u
program=$1
kills=${KILLS:-8}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1
as_root=()
[ "$(id -u)" = 0 ] && as_root=(--allow-run-as-root)

cat >"$dir/sweep.yaml" <<'Y'
name: sweep
ranks: [1, 2]
repeats: 12
sampling: {warmup_steps: 1, min_steps: 20, max_steps: 20, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: 512, layers: 4}}
    data: synthetic
    strategy: [single, ddp, fsdp, zero3]
    batch_size: [2, 4]
Y
total=192
run() { mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 "$program" run "$dir/sweep.yaml" -o "$dir/x.h5" --resume; }
count() { "$program" report "$dir/x.h5" --json 2>/dev/null | python3 -c '
import json, sys
studies = json.load(sys.stdin)["tables"][0]
print(sum(row["points"] for row in studies["rows"]) if isinstance(studies["rows"][0], dict) else 0)' 2>/dev/null || echo 0; }
journal_lines() { [ -f "$dir/x.h5.journal" ] && wc -l <"$dir/x.h5.journal" || echo 0; }

seed=$RANDOM
echo "seed $seed"
RANDOM=$seed
landed=0
for ((i = 0; i < kills; ++i)); do
  run >"$dir/out" 2>&1 &
  launcher=$!
  before=$(journal_lines)
  sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.2f", 1.0 + 2.5 * r / 32768 }')"
  ranks=$(pgrep -f "^$program run $dir/sweep.yaml")
  [ -n "$ranks" ] && kill -9 $ranks 2>/dev/null && landed=$((landed + 1))
  wait $launcher
  after=$(journal_lines)
  if [ -f "$dir/x.h5.journal" ] && [ "$after" -lt "$before" ]; then
    echo "FAILED: kill $i lost finished points ($before -> $after)"; exit 1
  fi
  if [ "$after" -gt 1 ]; then
    "$program" report "$dir/x.h5" >/dev/null 2>"$dir/err" || { echo "FAILED: unreadable after kill $i: $(cat "$dir/err")"; exit 1; }
  fi
  [ -f "$dir/x.h5" ] && [ ! -f "$dir/x.h5.journal" ] && break  # finished before the kill
done
run >"$dir/out" 2>&1 || { echo "FAILED: resume: $(cat "$dir/out")"; exit 1; }
"$program" report "$dir/x.h5" --csv "$dir/csv" >/dev/null || { echo "FAILED: report"; exit 1; }
points=$(count)
[ "$points" = "$total" ] || { echo "FAILED: $points points instead of $total"; exit 1; }
[ "$landed" -ge 3 ] || { echo "FAILED: only $landed kills hit a running sweep"; exit 1; }
echo "$landed kills, $points points, each once"
