#!/usr/bin/env bash
# NEEDS torch
# shardmark doctor as a user runs it: alone, on several ranks, and with all pairs. Also the preflight and the binding of
# runs.
set -u
program=$1
fake_nvml=$(realpath "$(dirname "$0")/../mpi/fake_nvml.cpp")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# shellcheck source=tests/cli/junit.bash
source "$(dirname "$0")/junit.bash"

as_root=()
[ "$(id -u)" = 0 ] && as_root=(--allow-run-as-root)
ranks() { local n=$1; shift; timeout 200 mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$n" "$@"; }
# has FILE TEXT...: the file contains each of the texts.
has() { local file=$1 text; shift; for text in "$@"; do grep -qF -- "$text" "$file" || fail "'$text' is not in: $(cat "$file")"; done; }
json() { python3 -c "import json, sys; document = json.load(open('$dir/out')); $1"; }

# With --strict, status 0 means healthy and 1 means that something should be fixed. Which one it is depends on the
# machine, but the text and the status must agree.
agrees() {
  local status=$1
  if grep -q '^healthy:' "$dir/out"; then [ "$status" = 0 ] || fail "healthy, but status $status"
  else [ "$status" = 1 ] || fail "status $status, but not healthy: $(cat "$dir/out" "$dir/err")"; fi
}

cd "$dir" || exit 1
"$program" doctor --strict --device cpu >out 2>err
agrees $?
[ -s err ] && fail "alone: wrote to stderr: $(cat err)"
has out "1 rank on 1 node" "load" "processor" "cores" "NUMA" "/dev/shm free" "Open MPI" "NCCL" "HDF5" "file locking works" Slurm
awk 'length > 135' out | grep -q . && fail "wide lines: $(cat out)"

"$program" doctor --strict --device cpu -o nowhere/x.h5 >out 2>err
[ $? = 2 ] || fail "a folder that is not there: $(cat out err)"
has err "there is no folder nowhere"
"$program" doctor --strict --device cpu -o "$dir" >out 2>err
agrees $?

ranks 2 "$program" doctor --strict --device cpu >out 2>err
agrees $?
has out "Placement of ranks" "2 ranks on 1 node"
ranks 2 "$program" doctor --strict --device cpu --json >out 2>err
json 'assert [r["rank"] for r in document["ranks"]] == [0, 1], document
for r in document["ranks"]: assert r["node"]["memory_bytes"] > 1e8 and r["cpu"]["node_cores"] >= 1 and r["machine"], r
assert document["ranks"][0]["pid"] != document["ranks"][1]["pid"]
assert all(f["what"] and f["fix"] for f in document["findings"])' || fail "--json"

# Binding: if there are enough cores, each rank has its own cores, in all of its threads. With --bind none, ranks are
# never bound.
allowed_of_ranks() { python3 -c "
import json
print(' '.join(r['cpu']['allowed'] for r in json.load(open('$dir/out'))['ranks']))"; }
if [ "$(nproc)" -ge 2 ]; then
  read -r first second <<<"$(allowed_of_ranks)"
  [ "$first" != "$second" ] || fail "two ranks on $(nproc) cores share $first"
  json 'assert all(r["cpu"]["bound_by"] == "shardmark" for r in document["ranks"]), document' || fail "who bound"
  cat >threads.sh <<'S'
"$1" collective all_reduce -b 32M -e 32M --iters 60 --device cpu >/dev/null 2>&1 &
sleep 3
grep -h Cpus_allowed_list /proc/$!/task/*/status | sort -u | wc -l
wait
S
  ranks 2 bash threads.sh "$program" >out 2>err
  [ "$(sort -u out)" = 1 ] || fail "threads of a rank may run elsewhere than the rank: $(cat out err)"
fi
ranks 2 "$program" doctor --strict --device cpu --json --bind none >out 2>err
read -r first second <<<"$(allowed_of_ranks)"
[ "$first" = "$second" ] || fail "--bind none bound: $first and $second"
OMP_PROC_BIND=true ranks 2 "$program" doctor --strict --device cpu --json >out 2>err
read -r first second <<<"$(allowed_of_ranks)"
[ "$first" = "$second" ] || fail "bound though OpenMP pins its threads"
many=$(($(nproc --all) + 1))
if [ "$many" -le 9 ]; then
  OMP_NUM_THREADS=1 ranks "$many" "$program" doctor --strict --device cpu >out 2>err && fail "more ranks than cores, but healthy"
  has out "$many ranks share" "start at most one rank per core"
fi

# A launcher that binds all ranks to one core, MPI without shared memory, and too many threads are found.
if [ "$(nproc)" -ge 2 ]; then
  core=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
  ranks 2 taskset -c "$core" "$program" doctor --strict --device cpu >out 2>err && fail "two ranks on one core, but healthy"
  has out "2 ranks are bound to the same 1 core(s)" "fix: mpirun --map-by"
  ranks 2 "$program" doctor --strict --device cpu --threads 64 >out 2>err && fail "64 threads on a core, but healthy"
  has out "a rank computes with 64 threads"
fi
ranks 2 --mca btl tcp,self "$program" doctor --strict --device cpu >out 2>err && fail "no shared memory, but healthy"
has out "OMPI_MCA_btl=tcp,self keeps MPI from using shared memory"

# Without --strict, findings are no failure, because mpirun would bury them under its message about a failed job. (-q is
# left out here, because it would suppress that message.)
timeout 200 mpirun "${as_root[@]}" --oversubscribe --bind-to none -n 2 --mca btl tcp,self "$program" doctor --device cpu >out 2>err ||
  fail "findings end as a failure: $(cat out err)"
has out "OMPI_MCA_btl=tcp,self keeps MPI from using shared memory" "to fix"
grep -q 'non-zero\|mpirun' err && fail "mpirun speaks of a failure: $(cat err)"

# Test results for CI have one case for each check, whether or not it found something.
ranks 2 --mca btl tcp,self "$program" doctor --strict --device cpu --junit doctor.xml >out 2>err && fail "no shared memory, but healthy"
cases() { python3 -c "
import xml.etree.ElementTree as tree
(suite,) = tree.parse('$dir/doctor.xml').getroot()
cases = {case.get('name'): [e.get('message') for e in case] for case in suite.findall('testcase')}
assert len(cases) == int(suite.get('tests')) == $1 and sum(map(len, cases.values())) == int(suite.get('failures')), cases
assert any('keeps MPI from using shared memory' in m for m in cases['who is where, and what MPI makes of it']) == $2, cases"; }
cases 7 True || fail "doctor.xml: $(cat doctor.xml)"
valid_junit doctor.xml
ranks 2 "$program" doctor --strict --device cpu --junit doctor.xml >out 2>err && fail "an earlier doctor.xml was replaced unasked"
has err "doctor.xml exists"

# All pairs are measured.
OMP_NUM_THREADS=1 ranks 3 "$program" doctor --strict --device cpu --pairs --html pairs.html --junit doctor.xml --overwrite >out 2>err
agrees_pairs=$?
[ "$agrees_pairs" -le 1 ] || fail "--pairs: status $agrees_pairs: $(cat out err)"
has out "transport mpi" "Bandwidth in the node" "Latency in the node" "rank 2" "95 % of the median"
cases 9 False || fail "doctor.xml with pairs: $(cat doctor.xml)"
valid_junit doctor.xml
has out "no bisection among fewer than four"
[ "$(grep -c '<rect' pairs.html)" = 12 ] || fail "pairs.html: not 2 maps of 3 pairs, both ways: $(cat pairs.html)"
ranks 2 "$program" doctor --strict --device cpu --pairs --json >out 2>err
json 'maps = document["pairs"]["maps"]
assert [m["unit"] for m in maps] == ["GB/s each way", "us"], maps
assert all(len(m["pairs"]) == 1 and m["pairs"][0][2] > 0 for m in maps), maps' || fail "--pairs --json: $(cat out err)"

# Measures both halves of the machine, and the halves of these. The ranks share a node, so no cut is slow.
OMP_NUM_THREADS=1 ranks 5 "$program" doctor --strict --device cpu --pairs --halve >out 2>err
[ $? -le 1 ] || fail "--halve: $(cat out err)"
has out "Across each cut" "bisection rank 0 and rank 1 | rank 3 and rank 4" "5 are an odd number: rank 2, in the middle, rests" \
  "5 of them together take" "no cut of it is called slow"
grep -q '^slow: bisection' out && fail "a cut of one node is called slow: $(cat out)"
echo "SwitchName=leaf1 Nodes=$(hostname),other[1-4]" >topology.conf
OMP_NUM_THREADS=1 ranks 4 "$program" doctor --strict --device cpu --pairs --halve --topology topology.conf --json >out 2>err
json 'cut, = document["bisection"]["cuts"]
assert cut["pairs"] == 2 and 0 < cut["low"] <= cut["together"] <= cut["high"] and cut["alone"] > 0, cut
assert document["halving"]["head"] and len(document["pairs"]["maps"]) == 2, document' || fail "--halve --json: $(cat out err)"

# A library in place of NVML reports a driver that is too old for this CUDA. Ranks must not fall back to CPUs without
# being asked.
if ! nvidia-smi >/dev/null 2>&1; then
  mkdir nvml
  c++ -shared -fPIC -std=c++20 "$fake_nvml" -o nvml/libnvidia-ml.so.1 || fail "the stand-in for NVML does not compile"
  old_driver() { LD_LIBRARY_PATH=$PWD/nvml:${LD_LIBRARY_PATH:-} FAKE_NVML_DRIVER=550.54.15 "$@"; }
  old_driver ranks 2 "$program" doctor --strict >out 2>err && fail "a driver that is too old, but healthy"
  has out "error   ranks 0-1: 8 GPUs (NVIDIA A100-PCIE-40GB)" "the driver is 550.54.15, CUDA 13.0 needs 580 or newer" \
    "fix: install driver 580 or newer" "--device cpu"
  old_driver ranks 2 "$program" collective all_reduce -b 1K -e 1K --iters 5 >out 2>err
  [ $? = 2 ] || fail "a run under a driver that is too old: $(cat out err)"
  [ "$(grep -c '^shardmark:' err)" = 1 ] || fail "not one line: $(cat err)"
  has err "the driver is 550.54.15"
  old_driver ranks 2 "$program" collective all_reduce -b 1K -e 1K --iters 5 --device cpu >out 2>err || fail "--device cpu: $(cat out err)"
  LD_LIBRARY_PATH=$PWD/nvml CUDA_VISIBLE_DEVICES='' "$program" doctor --strict >out 2>err && fail "no GPU is to be seen, but healthy"
  has out "CUDA_VISIBLE_DEVICES='' names none of the 8 GPUs on"
  LD_LIBRARY_PATH=$PWD/nvml CUDA_VISIBLE_DEVICES=0 "$program" doctor --strict >out 2>err && fail "no libcuda, but healthy"
  has out "CUDA shows none to the ranks (cudaErrorInsufficientDriver" "NVIDIA_DRIVER_CAPABILITIES"
fi

# Each mistake gives one line and status 2.
refused() {
  local what=$1 words=$2; shift 2
  "$@" >out 2>err
  local status=$?
  [ $status = 2 ] || fail "$what: status $status, not 2: $(cat err)"
  [ "$(grep -c '^shardmark:' err)" = 1 ] || fail "$what: not one line: $(cat err)"
  has err "$words"
}
refused "pairs of one" "needs two ranks or more" "$program" doctor --pairs --device cpu
refused "page that exists" "pairs.html exists" ranks 2 "$program" doctor --pairs --html pairs.html --device cpu
refused "halving of two" "--halve needs four nodes or more" ranks 2 "$program" doctor --pairs --halve --device cpu
refused "halving alone" "--halve requires --pairs" "$program" doctor --halve
refused "no topology" "no-such.conf: there is no such file" ranks 2 "$program" doctor --pairs --topology no-such.conf --device cpu
printf 'SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n2\n' >topology.conf
refused "a node twice" "topology.conf:2: node n2 hangs on switch leaf1 (line 1), too" \
  ranks 2 "$program" doctor --pairs --topology topology.conf --device cpu
echo "SwitchName=leaf1 Nodes=other" >topology.conf
refused "a node that the file lacks" "topology.conf: no switch has node $(hostname)" \
  ranks 2 "$program" doctor --pairs --topology topology.conf --device cpu
refused "html alone" "--html requires --pairs" "$program" doctor --html x.html
refused "unwritable page" "no/such.html: cannot be written" ranks 2 "$program" doctor --pairs --html no/such.html --device cpu

# The preflight of a run prints warnings on stderr and stores all findings in the study.
cat >tiny.yaml <<'Y'
name: tiny
ranks: [2]
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3, time_limit: 5}
collectives:
  - operation: all_reduce
    bytes: 1KiB
Y
ranks 2 --mca btl tcp,self "$program" run tiny.yaml -o x.h5 --device cpu >out 2>err || fail "a run with a warning: $(cat err)"
has err "warning: ranks 0-1: OMPI_MCA_btl=tcp,self keeps MPI from using shared memory" "2 ranks on 1 node"
"$program" report x.h5 --raw --json >x.json 2>err || fail "report --raw: $(cat err)"
python3 - <<'P' || fail "preflight and placement are not in the study"
import json
study = json.load(open("x.json"))
facts = study["environment"]["facts"]
point, = study["points"]
assert point["preemptions"] >= 0 and len(point["samples"]["preemptions"]) == 2, point
assert all(load["others"] >= 0 and load["stolen"] >= 0 for load in facts["load"]), facts
assert any("shared memory" in f["text"] and f["severity"] == "warning" for f in facts["preflight"]), facts
assert facts["placement"][0]["ranks"].startswith("0") and facts["placement"][0]["cores"] != "", facts
P
ranks 2 "$program" run tiny.yaml -o q.h5 --device cpu -q >out 2>err
grep -q "ranks on 1 node" err && fail "--quiet tells where ranks sit"
ranks 2 "$program" collective all_reduce -b 8 -e 8 --device cpu >out 2>err || fail "collective: $(cat err)"
has out "# 2 ranks on 1 node"

# If other processes use all cores, the doctor and the preflight say so, the study stores it, and its report says it
# first.
"$program" doctor --device cpu >out 2>err
if ! grep -qE '^load +unknown' out; then
  busy=()
  for ((i = 0; i < $(nproc); ++i)); do
    bash -c 'while :; do :; done' &
    busy+=($!)
  done
  "$program" doctor --device cpu >out 2>err || fail "a finding is a failure: $(cat out err)"
  has out "warning rank 0: other processes use" "of $(nproc)" "times will be too long by an unknown factor"
  grep -q healthy out && fail "a busy machine is healthy: $(cat out)"
  ranks 2 "$program" run tiny.yaml -o busy.h5 --device cpu >out 2>err || fail "a run on a busy machine: $(cat err)"
  kill "${busy[@]}"
  grep -m 1 'warning: ' err | grep -q 'other processes use' || fail "not the first warning: $(cat err)"
  "$program" report busy.h5 >out 2>err || fail "report: $(cat err)"
  tr '\n' ' ' <out | tr -s ' ' | grep -q 'Busy machine: before ranks computed, other processes use .* busbw' ||
    fail "the report does not say it before its numbers: $(cat out)"
fi

[ "$failures" = 0 ] && echo "doctor: facts, findings, binding, pairs and preflight as they should be"
[ "$failures" = 0 ]
