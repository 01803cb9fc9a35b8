#!/usr/bin/env bash
# NEEDS torch
# A sweep over strategies and layouts includes points with a learning rate of 1e30. These points are wrong, and the
# reason names the step. The other points are measured, and every command can read the study.
set -euo pipefail
program=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
fail() { echo "FAILED: $*"; cat out err 2>/dev/null; exit 1; }

common='    model: {gpt2: {layers: 4, width: 16, heads: 2, sequence: 8, vocabulary: 32}}
    ranks: 2
    batch_size: 2
    accumulation: 4
    optimizer: [{adamw: {lr: 0.001}}, {adamw: {lr: 1.0e+30}}, {sgd: {lr: 0.01}}]'
cat >suite.yaml <<Y
name: diverging
shuffle: false
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3}
training:
  - strategy: [ddp, fsdp, zero3, {ddp: {reduction: int8}}]
$common
  - strategy: ddp
    pipeline: 2
    pipeline_schedule: [gpipe, 1f1b, {interleaved: {chunks: 2}}, zero_bubble]
$common
  - strategy: ddp
    tensor: 2
$common
  - strategy: ddp
    context: 2
$common
Y
status=0
timeout 600 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 "$program" run suite.yaml -o x.h5 \
  --device cpu --openmetrics x.prom >out 2>err || status=$?
[[ $status == 1 ]] || fail "exit status $status instead of 1: some points are wrong"
"$program" report x.h5 --raw --json >all.json 2>err || fail "report --raw"
python3 - <<'P' || fail "outcomes"
import json
points = json.load(open("all.json"))["points"]
assert len(points) == 30, len(points)
for point in points:
    diverges = "1e+30" in json.dumps(point["optimizer"])
    assert point["outcome"] == ("wrong" if diverges else "ok"), (point["outcome"], point["reason"])
    assert not diverges or "is not finite at step 2, as on one device: training diverges" in point["reason"], point["reason"]
P
for words in report "report --raw --csv csv" "report --openmetrics y.prom" "report --html y.html"; do
  # shellcheck disable=SC2086
  set -- $words
  "$program" "$1" x.h5 "${@:2}" >out 2>err || fail "$words"
done
grep -q 'shardmark_points{outcome="wrong"} 10' x.prom || fail "x.prom does not count the wrong points"
echo "diverging: 10 points of 30 are wrong, the others are measured"
