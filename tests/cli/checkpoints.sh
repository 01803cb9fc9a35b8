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
    strategy: [ddp, fsdp, single, {fsdp: {layout: dim0}}, zero3]
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
has "save: full(folder=/proc/nowhere): cannot make the folder" "replicas of single train on their own"
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
# 4 strategies x (none, full twice, sharded three times), and single without a checkpoint
assert len(saves["ok"]) == 25, saves
assert len(saves["failed"]) == 4 and all("nowhere" in save for _, save in saves["failed"]), saves
assert len(saves["skipped"]) == 6 and {s for s, _ in saves["skipped"]} == {"single"}, saves
P

runs "$program" report x.h5 --table checkpoints
ends 0; has "Checkpoints: what writing and reading one takes" "sharded(folder=" "stall"
"$program" report x.h5 --table goodput --failures restart=10m --json >goodput.json
python3 - <<'P'
import json
points = {(p["strategy"], p["save"]): p for p in json.load(open("x.json"))["points"] if p["outcome"] == "ok"}
(table,) = json.load(open("goodput.json"))["tables"]
rows = table["rows"]
def own(row):
    return next(p for (strategy, save), p in points.items() if strategy == row["strategy"] and save == (row["save"] or "none"))
written = [p["checkpoint_write_time"] for (_, save), p in points.items() if save.startswith("full") and "async=false" in save]
for row in rows:
    p = own(row)
    if p["save"] == "none":    # as whole checkpoints of the same state
        assert min(written) <= row["checkpoint write"] <= max(written), (row, written)
    else:
        assert abs(row["checkpoint write"] - max(p["checkpoint_stall_time"], 0)) < 1e-9, (row, p)
        assert "async=false" in p["save"] or row["best interval Daly"] >= p["checkpoint_write_time"], (row, p)
assert not any("sync=false" in row["save"].replace("async=false", "") for row in rows if row["save"]), rows
assert len(rows) == 20, len(rows)    # no time is known of what is not on the disk yet
P

# fp16: the loss scale is a part of the state, and goes on beside a write. Two ranks of one copy of the model; a search.
ranks run suites/saves.yaml -o z.h5 --strategy ddp --set precision=fp16 "save=[\"full(folder=$dir/scratch, async=true)\", \"sharded(folder=$dir/scratch, async=true)\"]"
ends 0
ranks run suites/saves.yaml -o s.h5 --strategy ddp --set batch_size=largest "save=full(folder=$dir/scratch)"
has "a search for the largest batch tries many batches"

# A run of `train` has --checkpoint.
runs "$program" train --model mlp --steps 1 --set save=full
ends 2; has "save"

# A disk that has no room is refused before anything is trained. One that fills up meanwhile fails the point with what the
# system says; the next one is measured, and nothing is left.
if [[ $(id -u) != 0 ]] || ! mkdir small full || ! mount -t tmpfs -o size=64k none small 2>/dev/null; then
  echo "checkpoints: ok (without a full disk, which takes root and a file system of its own)"
  exit 0
fi
trap 'umount "$dir"/small "$dir"/full 2>/dev/null; rm -rf "$dir"' EXIT
bytes=$(python3 -c 'import json; print(int(max(p["predicted_checkpoint_bytes"] or 0 for p in json.load(open("x.json"))["points"])))')
mount -t tmpfs -o size=$(((bytes / 4096 + 2) * 4096)) none full    # room for the tensors, not for the names
for form in full sharded "full(async=true)" "sharded(async=true)"; do
  name=${form%%(*} options=${form#"$name"}
  options=${options:+, ${options:1:-1}}
  for disk in small full; do
    rm -f y.h5*
    ranks run suites/saves.yaml -o y.h5 --strategy ddp --set "save=[\"$name(folder=$dir/$disk$options)\", none]"
    ends 1
    if [[ $disk == small ]]; then has "the checkpoints need" "the disk of"; else has "No space left on device"; fi
    [[ -z $(ls $disk) ]] || fail "files are left: $(ls -R $disk)"
    runs "$program" report y.h5 --raw --json
    [[ $(grep -o '"outcome": *"[a-z_]*"' <<<"$said" | sort | tr -d '\n') == *failed*ok* ]] || fail "not one failed and one ok"
  done
done
echo "checkpoints: ok"
