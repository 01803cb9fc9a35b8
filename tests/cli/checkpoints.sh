#!/usr/bin/env bash
# NEEDS torch
# The axis `save`: every form of a checkpoint is written, read and compared, and leaves no files behind. A folder that
# cannot be written or has no room fails its points, and the sweep goes on. What was measured is in the table checkpoints, and
# goodput counts with it.
set -euo pipefail
# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
ranks() { runs mpirun "${as_root[@]}" --oversubscribe --bind-to none -n 2 "$program" "$@"; }

mkdir scratch
cat >suites/saves.yaml <<Y
name: saves
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3}
training:
  - model: {gpt2: {layers: 2, width: 64, heads: 2, sequence: 16, vocabulary: 256}}
    strategy: [ddp, fsdp, single]
    optimizer: adamw
    batch_size: 2
    save:
      - none
      - {full: {folder: $dir/scratch, async: [false, true]}}
      - {sharded: {folder: $dir/scratch, async: [false, true]}}
      - {sharded: {folder: $dir/scratch, sync: false}}
      - {full: {folder: /proc/nowhere}}
Y
ranks run suites/saves.yaml -o x.h5
ends 1    # for the points whose folder cannot be made
has "cannot make the folder /proc/nowhere/shardmark-" 'name another: --set "save=full(folder=PATH)"' \
  "replicas of single train on their own"
[[ -z $(ls scratch) ]] || fail "files are left: $(ls scratch)"
"$program" report x.h5 --raw --json >x.json
python3 - <<'P'
import json
points = json.load(open("x.json"))["points"]
saves = {}
for p in points:
    saves.setdefault(p["outcome"], []).append((p["strategy"], p["save"]))
    if p["outcome"] == "ok" and p["save"] != "none":
        state = p["predicted_checkpoint_bytes"]
        assert state <= p["checkpoint_bytes"] <= state + 2 * 65536, p
        assert 0 < p["checkpoint_write_time"] and 0 < p["checkpoint_read_time"], p
        assert ("async=true" in p["save"]) == (p["checkpoint_stall_time"] != p["checkpoint_write_time"]), p
# 2 strategies x (none, full twice, sharded three times), and single without a checkpoint
assert len(saves["ok"]) == 13, saves
assert len(saves["failed"]) == 2 and all("nowhere" in save for _, save in saves["failed"]), saves
assert len(saves["skipped"]) == 6 and {s for s, _ in saves["skipped"]} == {"single"}, saves
P

runs "$program" report x.h5 --table checkpoints
ends 0; has "Checkpoints: what writing and reading one takes" "sharded(folder=" "stall"
runs "$program" report x.h5 --table goodput --failures restart=10m
ends 0; has "goodput"

# A run of `train` has --checkpoint.
runs "$program" train --model mlp --steps 1 --set save=full
ends 2; has "save"

# A disk without room: the point fails with what the system says, the next one is measured, and nothing is left.
if [[ $(id -u) == 0 ]] && mkdir small && mount -t tmpfs -o size=64k none small 2>/dev/null; then
  trap 'umount "$dir/small"; rm -rf "$dir"' EXIT
  for form in full sharded "full(async=true)" "sharded(async=true)"; do
    name=${form%%(*} options=${form#"$name"}
    options=${options:+, ${options:1:-1}}
    rm -f y.h5*
    ranks run suites/saves.yaml -o y.h5 --strategy ddp --set "save=[\"$name(folder=$dir/small$options)\", none]"
    ends 1; has "No space left on device"
    [[ -z $(ls small) ]] || fail "files are left: $(ls -R small)"
    runs "$program" report y.h5 --raw --json
    [[ $(grep -o '"outcome": *"[a-z_]*"' <<<"$said" | sort | tr -d '\n') == *failed*ok* ]] || fail "not one failed and one ok"
  done
fi
echo "checkpoints: ok"
