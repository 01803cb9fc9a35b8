#!/usr/bin/env bash
# NEEDS torch
# The study of a training run has its curves even if ranks are killed, hang or are asked to stop, or if the disk fills
# up. The same command with --resume continues with the curve of an uninterrupted run. The test follows every advice
# that is printed.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
with_own_mounts
common=(--model 'mlp(features=64, width=64, layers=2, classes=8)' --strategy ddp --batch-size 2 --set seed=7 deterministic=true log_every=10)

# Starts a run in the background and waits until it has written its second checkpoint. It looks often, because all steps
# up to then are repeated by the uninterrupted run.
often=(--checkpoint-every 40 --eval-every 20 --set eval_batches=1)
begin() {
  rm -rf ck s.h5*
  trains 2 --steps 1000000 --checkpoint ck "${often[@]}" -o s.h5 "$@"
  PAUSE=0.02 wait_for 300 "two checkpoints" has_two_checkpoints
}
has_two_checkpoints() { [[ $(ls ck 2>/dev/null | wc -l) -ge 2 ]]; }
newest() { ls ck | tail -n 1 | sed 's/step-0*\([0-9]*\).*/\1/'; }
# Prints the points of a study, each with: outcome, first step, steps, evaluations, and a hash of all curves except
# times.
curves() {
  "$program" report "$1" --raw --json | python3 -c '
import hashlib, json, sys
for point in json.load(sys.stdin)["points"]:
    rows = point["samples"]
    kept = {name: rows[name] for name in sorted(rows) if name not in ("step", "checkpoint_write", "checkpoint_read")}
    steps = {len(row) for name in ("step", "loss", "learning_rate", "gradient_norm") for row in rows.get(name, [[]])}
    assert len(steps) == 1, steps
    print(point["outcome"], point["first_step"], *steps, len(rows.get("held_out_at", [[]])[0]),
          hashlib.sha256(json.dumps(kept).encode()).hexdigest())'
}
# Resumes a run to the end. Its study equals that of an uninterrupted run.
goes_on() {
  local steps=$(($(newest) + 30))
  train 2 0 --steps "$steps" --checkpoint ck "${often[@]}" -o s.h5 --resume
  says 'continuing after step'
  [[ -e s.h5 && ! -e s.h5.journal ]] || fail "$1: no published study"
  rm -f whole.h5
  train 2 0 --steps "$steps" --eval-every 20 --set eval_batches=1 -o whole.h5
  curves s.h5 >goes_on
  curves whole.h5 >whole
  cmp goes_on whole || fail "$1: $(cat goes_on) instead of $(cat whole)"
}

# A rank is killed. The same command is refused with an advice, and following it works.
begin
kill -KILL "$(process_of 1)"
ends
[[ -e s.h5.journal && ! -e s.h5 ]] || fail "a killed run has no journal"
refuses 's.h5.journal exists: an unfinished study; go on with --resume, or choose another output' -o s.h5 --checkpoint new
refuses 's.h5 exists, and a run without --checkpoint cannot go on with it; choose another output' -o s.h5
refuses '--overwrite changes nothing here: it needs --save-weights or --trace: a study is not overwritten, name another with -o' -o s.h5 --overwrite
"$program" report s.h5 --html page.html >/dev/null 2>&1
grep -q 'Loss of training runs' page.html || fail "the curve of a killed run is not on the page"
goes_on "a killed rank"
"$program" report s.h5 --failures restart=10m --table goodput >goodput || fail "checkpoints were not timed: $(cat goodput)"
grep -q 'read' goodput || fail "reading the checkpoint was not timed: $(cat goodput)"
refuses 's.h5 exists; go on with --resume, or choose another output' -o s.h5 --checkpoint other

# With another number of ranks, the steps have their own record, and the earlier ones stay.
train 1 0 --steps $(($(newest) + 20)) --batch-size 4 --checkpoint ck -o s.h5 --resume
curves s.h5 >two
[[ $(head -n 1 two) == "$(cat whole)" && $(tail -n 1 two) == "ok $(sed 's/ok 0 \([0-9]*\) .*/\1/' whole) 20 1 "* ]] || fail "other ranks: $(cat two)"

# A rank hangs.
begin --timeout 3
kill -STOP "$(process_of 1)"    # rank 0 writes the record of the hang
ends
says 'go on with --resume'
grep -q '"outcome": *"timed_out"' <<<"$("$program" report s.h5 --raw --json)" || fail "no record of the hang"
goes_on "a hang"

# The run is asked to stop.
begin
kill -TERM "$(ours | sed -n 1p)"    # only one rank gets it; all stop at the same step, with a checkpoint
ends
says "stopped by a signal after step $(newest) of"
goes_on "SIGTERM"

# A study with points of a sweep is not one of a training run.
printf 'name: sweep\nranks: 1\ncollectives:\n  - {operation: broadcast, bytes: 8}\n' >sweep.yaml
"$program" run sweep.yaml -o sweep.h5 -q >out 2>&1 || fail "a sweep"
refuses 'sweep.h5 holds points of a sweep' --checkpoint fresh -o sweep.h5 --resume

# The disk fills up.
if [[ -n ${OWN_MOUNTS:-} ]]; then
  mkdir disk
  mount -t tmpfs -o size=256k tmpfs disk
  # Curves are written every second and before each checkpoint. A fast machine would fill the disk within the first
  # second, and nothing would be kept.
  train 1 3 --strategy single --steps 25000 --checkpoint often --checkpoint-every 1000 --set log_every=100 eval_batches=0 -o disk/s.h5
  grep -q '^ *25000 ' out || fail "it did not train to its end"
  says 'shardmark: failed: the study was not written, its curves are in disk/s.h5.journal: cannot write disk/s.h5.samples'
  says 'No space left on device; what was recorded before is kept: make room'
  [[ $(grep -c 'samples could not be written' out) == 1 ]] || fail "not one warning"
  python3 - disk/s.h5.journal <<'PYTHON' || fail "curves are lost"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
kept = sum(s["columns"] for line in lines if "progress" in line for s in line["samples"]["series"] if s["name"] == "loss")
assert 1000 <= kept < 25000, kept
PYTHON
  # There is enough space for the curves but not for the study. The advice is followed.
  rm disk/*
  mount -o remount,size=72k disk
  train 1 3 --strategy single --steps 300 --checkpoint full -o disk/s.h5
  [[ ! -e disk/s.h5 ]] || fail "there is no room for the file, and it is there"
  says 'what was recorded is kept in its journal: make room'
  mount -o remount,size=4m disk
  train 1 0 --strategy single --steps 300 --checkpoint full -o disk/s.h5 --resume
  [[ -e disk/s.h5 ]] || fail "the study is not published later"
  [[ $(curves disk/s.h5) == 'ok 0 300 1 '* ]] || fail "published later: $(curves disk/s.h5)"
  umount disk
fi
echo ok
