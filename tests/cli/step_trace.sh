#!/usr/bin/env bash
# QUICK
# NEEDS torch
# run --trace and train --trace: timelines that JSON parsers accept, with all ranks in one file, and with the same calls
# as plan --step.
set -euo pipefail
program=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
# shellcheck source=tests/loaded.bash
source "$(dirname "${BASH_SOURCE[0]}")/../loaded.bash"
mkdir tools
load_program "$program" "$scratch/tools"
fail() { echo "FAILED: $*"; cat out err 2>/dev/null; exit 1; }
model='mlp(features=8, width=8, layers=3, classes=4)'

ranks() {  # STATUS FLAG...: runs on two ranks
  local expected=$1 status=0
  shift
  timeout 600 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 "${loaded[@]}" "$@" \
    >out 2>err || status=$?
  [[ $status == "$expected" ]] || fail "$*: exit status $status instead of $expected"
}

# check FILE RANKS STEPS: the events are whole steps, properly nested, and every call has its bytes.
cat >check.py <<'PYTHON'
import json, sys
path, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
document = json.load(open(path))
events = document["traceEvents"]
assert document["otherData"]["clocks"], "nothing says how clocks are aligned"
assert {e["pid"] for e in events} == set(range(ranks)), "a rank is missing"
for rank in range(ranks):
    own = [e for e in events if e["pid"] == rank]
    slices = [e for e in own if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= -1 for e in slices)
    names = [e["name"] for e in slices]
    assert names.count("load a micro-batch") == steps, names
    assert sum(name.startswith("forward of") for name in names) == 3 * steps
    assert sum(name.startswith("backward of") for name in names) == 3 * steps
    # Computing, waiting and local work follow each other without overlap.
    track = sorted((e for e in slices if e["tid"] == 0), key=lambda e: (e["ts"], e["dur"]))
    for before, after in zip(track, track[1:]):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.01, (before, after)
    phases = [e["name"] for e in slices if e["cat"] == "phase"]
    assert phases == ["data", "forward", "backward", "optimizer"] * steps, phases
    begins = [e for e in own if e["ph"] == "b"]
    ends = {e["id"]: e["ts"] for e in own if e["ph"] == "e"}
    assert len(begins) == len(ends) and all(ends[e["id"]] >= e["ts"] for e in begins)
    # fsdp with 3 blocks and 2 slots gathers groups 1 to 3, and 1 again, because 2 and 3 are still in their slots. There
    # are as many reductions as blocks.
    assert sum(e["name"].startswith("all_gather") for e in begins) == 4 * steps
    assert sum(e["name"].startswith("reduce_scatter") for e in begins) == 3 * steps
    assert all(e["args"]["bytes"] > 0 and e["args"]["ranks"] == 2 for e in begins)
    memory = [e["args"]["bytes"] for e in own if e["ph"] == "C"]
    assert len(memory) == 8 * steps and min(memory) > 0, memory
PYTHON

cat >suite.yaml <<YAML
name: tiny
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 10, time_limit: 1}
training:
  - model: {mlp: {features: 8, width: 8, layers: 3, classes: 4}}
    data: synthetic
    strategy: [fsdp, ddp]
    ranks: 2
    batch_size: 4
YAML
touch file
ranks 2 run suite.yaml -o x.h5 --device cpu --trace file/traces
grep -q -- '--trace: the directory file/traces cannot be made (Not a directory)' err || fail "no word of the directory in a file"
ranks 0 run suite.yaml -o x.h5 --device cpu --trace traces
[[ $(find traces -name 'fsdp-2-ranks-*.json' | wc -l) == 1 && $(find traces -name '*.json' | wc -l) == 2 ]] || fail "$(ls traces)"
python3 check.py traces/fsdp-*.json 2 3 || fail "a measured trace"

# Traces are never replaced without --overwrite. When a study is resumed, those of finished points stay.
sums() { cksum traces/*.json; }
before=$(sums)
ranks 2 run suite.yaml -o y.h5 --device cpu --trace traces
grep -q 'exists; name another place, or replace it with --overwrite' err || fail "traces that are there"
[[ ! -e y.h5 && ! -e y.h5.journal && $(sums) == "$before" ]] || fail "a refused run has written something"
ranks 2 run suite.yaml -o y.h5 --device cpu --overwrite
ranks 0 run suite.yaml -o x.h5 --device cpu --trace traces --resume
[[ $(sums) == "$before" ]] || fail "resuming a finished study has replaced its traces"
ranks 0 run suite.yaml -o y.h5 --device cpu --trace traces --overwrite
[[ $(sums) != "$before" && $(find traces -name '*.json' | wc -l) == 2 ]] || fail "--overwrite has not replaced them"

# Each planned point has its own file: `auto`, and the strategy that it chooses.
sed 's/strategy: .*/strategy: [auto, ddp, fsdp]/' suite.yaml >auto.yaml
ranks 0 run auto.yaml -o auto.h5 --device cpu --trace auto
[[ $(find auto -name '*.json' | wc -l) == 3 && $(find auto -name 'auto-2-ranks-*.json' | wc -l) == 1 ]] || fail "$(ls auto)"
"$program" report auto.h5 --raw --json >auto.json 2>err
python3 - <<'PYTHON' || fail "names of traces"
import glob, json
ids = {point["id"] for point in json.load(open("auto.json"))["points"]}
assert {name.rsplit("-", 1)[1][:-5] for name in glob.glob("auto/*.json")} == ids, (glob.glob("auto/*.json"), ids)
PYTHON

# A study that goes on with further points: another run's trace of one of these stops it, its own do not.
ranks 0 run suite.yaml -o part.h5 --device cpu --strategy fsdp --trace part
cp traces/ddp-*.json part/
ranks 2 run suite.yaml -o part.h5 --device cpu --trace part --resume
grep -q 'part/ddp-2-ranks-.*exists' err || fail "a trace of another study"
rm part/ddp-*.json
ranks 0 run suite.yaml -o part.h5 --device cpu --trace part --resume
[[ $(find part -name '*.json' | wc -l) == 2 ]] || fail "$(ls part)"

ranks 0 train --device cpu --model "$model" --strategy fsdp --steps 20 --eval-every 4 --set eval_batches=1 log_every=4 --trace steps
grep -q 'steps 3 to 5: all ranks in steps/steps.json' out err || fail "it does not say what it wrote"
python3 check.py steps/steps.json 2 3 || fail "the trace of a run"

# plan --step describes the same step: it has as many calls and as many bytes.
"$program" plan --step fsdp --model "$model" -n 2 >out 2>err || fail "plan --step"
python3 - <<'PYTHON' || fail "plan --step and the trace differ"
import glob, json, re
text = open("out").read()
started = re.findall(r"start (\w+) #(\d+) of (\S+), ([\d.]+ \w+) over 2 ranks", text)
events = json.load(open(glob.glob("traces/fsdp-*.json")[0]))["traceEvents"]
calls = {e["name"] for e in events if e["ph"] == "b"}
assert {f"{name} #{number} of {group}" for name, number, group, _ in started} == calls, (started, calls)
assert text.index("forward of") < text.index("backward of") < text.index("apply the optimizer")
PYTHON
grep -q '^memory of a rank' out && grep -q 'parameter slot 1' out || fail "no memory"
status=0
"$program" plan --step 'fsdp(group=3)' -n 4 >out 2>err || status=$?
[[ $status == 2 ]] && grep -q -- '--step: groups of 3 do not divide 4 ranks' err || fail "a group that does not divide the ranks"
status=0
"$program" plan >out 2>err || status=$?
[[ $status == 2 ]] && grep -q 'which suite? give one, or --step STRATEGY' err || fail "neither a suite nor a step"
