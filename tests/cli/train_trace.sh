#!/usr/bin/env bash
# QUICK
# NEEDS torch
# shardmark train --trace: writes a trace of some steps of each rank, which JSON parsers accept, to the given folder,
# and prints nothing else on stderr.
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
fail() { echo "FAILED: $*"; cat out err; exit 1; }

# train STATUS FLAG...: runs on two ranks, whose files may have $kib KiB. MPI uses no shared memory, because that would
# be files, too, and only the loopback, because tests of clusters make and remove other interfaces meanwhile.
kib=unlimited
train() {
  local expected=$1 status=0 start=("${loaded[@]}")
  shift
  [[ $kib == unlimited ]] || start=("$program")    # a loaded program has its own limits
  timeout 600 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl self,tcp --mca btl_tcp_if_include lo -n 2 \
    bash -c 'ulimit -f "$1"; shift; exec "$@"' - "$kib" "${start[@]}" train --device cpu \
    --model 'mlp(features=8, width=8, layers=1, classes=4)' --set eval_batches=0 log_every=20 "$@" >out 2>err || status=$?
  [[ $status == "$expected" ]] || fail "$*: exit status $status instead of $expected"
}

touch file
train 2 --steps 1 --trace file/traces
grep -q -- '--trace: the directory file/traces cannot be made (Not a directory)' err || fail "no word of the directory in a file"
train 0 --steps 20 --strategy fsdp --trace traces
grep -q 'steps 6 to 8: traces written to traces' out err || fail "it does not say what it wrote"
if grep -q ERROR err; then fail "a word of the profiler's own"; fi
[[ $(ls traces) == $'rank-0.json\nrank-1.json\nsteps.json' ]] || fail "not one file for each rank: $(ls traces)"
for rank in 0 1; do
  python3 - "traces/rank-$rank.json" <<'PYTHON' || fail "the trace of rank $rank"
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = [event["name"] for event in events if event.get("cat") == "cpu_op"]
# The model is one linear layer, and the trace has forward, backward and update of three steps.
assert names.count("aten::addmm") >= 3, names.count("aten::addmm")
assert any("Backward" in name for name in names)
PYTHON
done
train 2 --steps 20 --trace traces
grep -q 'traces/steps.json exists; name another place, or replace it with --overwrite' err || fail "it would replace a trace"
train 0 --steps 2 --trace traces --overwrite    # the run is shorter than the range of steps to trace
grep -q 'steps 1 to 2: traces written' out err || fail "a short run is not traced"

# If the disk is full, no incomplete trace stays, and the run reports it.
mkdir full
kib=50
train 3 --steps 3 --trace full
grep -q 'failed: the trace of rank 1 was not written' err || fail "a trace that was cut short passes for whole"
[[ $(ls full) == steps.json ]] || fail "it left $(ls full)"
