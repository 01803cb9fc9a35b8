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
# shellcheck source=tests/waiting.bash
source "$(dirname "$0")/../waiting.bash"

as_root=()
[ "$(id -u)" = 0 ] && as_root=(--allow-run-as-root)
# Where MPI uses TCP, it uses the loopback: tests of clusters make and remove other interfaces meanwhile.
export OMPI_MCA_btl_tcp_if_include=lo
ranks() { local n=$1; shift; timeout 600 mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$n" "$@"; }
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
"$program" doctor --strict --device cpu -o "$dir" >out 2>err
agrees $?
knows_load=yes
grep -qE '^load +unknown' out && knows_load=
[ -s err ] && fail "alone: wrote to stderr: $(cat err)"
has out "1 rank on 1 node" "load" "processor" "cores" "NUMA" "/dev/shm free" "Open MPI" "NCCL" "HDF5" "file locking works" Slurm
[[ -z $(awk 'length > 135' out) ]] || fail "wide lines: $(cat out)"

"$program" doctor --strict --device cpu -o nowhere/x.h5 >out 2>err
[ $? = 2 ] || fail "a folder that is not there: $(cat out err)"
has err "there is no folder nowhere"

ranks 2 "$program" doctor --strict --device cpu --json >out 2>err
status=$?
json "assert $status == any(f['severity'] != 'note' for f in document['findings']), document" || fail "--json: status $status"
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
  # A collective prints its first row soon, and would need a minute for its last one.
  timeout 300 mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 \
    "$program" collective all_reduce -b 8 -e 32M -f 2048 --iters 500 -w 0 --device cpu >out 2>err &
  job=$!
  ranks_of_job() { pgrep -f "^$program collective .* 500 " | while read -r pid; do [ "$(readlink "/proc/$pid/cwd")" != "$dir" ] || echo "$pid"; done; }
  within 200 grep -qE "^ +8 " out || fail "a collective prints no rows: $(cat out err)"
  for pid in $(ranks_of_job); do grep -h Cpus_allowed_list "/proc/$pid/task"/*/status | sort -u | wc -l; done >threads
  [ "$(xargs <threads)" = "1 1" ] || fail "threads of a rank may run elsewhere than the rank: $(cat threads)"
  has out "# 2 ranks on 1 node"
  kill $job
  wait $job
fi
ranks 2 "$program" doctor --strict --device cpu --json --bind none >out 2>err
read -r first second <<<"$(allowed_of_ranks)"
[ "$first" = "$second" ] || fail "--bind none bound: $first and $second"
OMP_PROC_BIND=true ranks 2 "$program" doctor --strict --device cpu --json >out 2>err
read -r first second <<<"$(allowed_of_ranks)"
[ "$first" = "$second" ] || fail "bound though OpenMP pins its threads"

# A launcher that binds all ranks to one core, MPI without shared memory, and too many threads are found.
if [ "$(nproc)" -ge 2 ]; then
  core=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
  ranks 2 taskset -c "$core" "$program" doctor --strict --device cpu >out 2>err && fail "two ranks on one core, but healthy"
  has out "2 ranks are bound to the same 1 core(s)" "fix: mpirun --map-by"
  ranks 2 "$program" doctor --strict --device cpu --threads 64 >out 2>err && fail "64 threads on a core, but healthy"
  has out "a rank computes with 64 threads"
fi

# Without --strict, findings are no failure, because mpirun would bury them under its message about a failed job. (-q is
# left out here, because it would suppress that message.)
timeout 600 mpirun "${as_root[@]}" --oversubscribe --bind-to none -n 2 --mca btl tcp,self "$program" doctor --device cpu >out 2>err ||
  fail "findings end as a failure: $(cat out err)"
has out "Placement of ranks" "2 ranks on 1 node" "OMPI_MCA_btl=tcp,self keeps MPI from using shared memory" "to fix"
grep -q 'non-zero\|mpirun' err && fail "mpirun speaks of a failure: $(cat err)"

# Test results for CI have one case for each check, whether or not it found something.
ranks 2 --mca btl tcp,self "$program" doctor --strict --device cpu --junit doctor.xml >out 2>err && fail "no shared memory, but healthy"
has out "OMPI_MCA_btl=tcp,self keeps MPI from using shared memory"
cases() { python3 -c "
import xml.etree.ElementTree as tree
(suite,) = tree.parse('$dir/doctor.xml').getroot()
cases = {case.get('name'): [e.get('message') for e in case] for case in suite.findall('testcase')}
assert len(cases) == int(suite.get('tests')) == $1 and sum(map(len, cases.values())) == int(suite.get('failures')), cases
assert any('keeps MPI from using shared memory' in m for m in cases['who is where, and what MPI makes of it']) == $2, cases"; }
cases 7 True || fail "doctor.xml: $(cat doctor.xml)"
valid_junit doctor.xml
"$program" doctor --strict --device cpu --junit doctor.xml >out 2>err && fail "an earlier doctor.xml was replaced unasked"
has err "doctor.xml exists"

# More ranks than cores are found.
many=$(($(nproc --all) + 1))
shares_cores() { [ "$1" != 0 ] || fail "more ranks than cores, but healthy"; has out "$many ranks share" "start at most one rank per core"; }
if [ "$many" -gt 3 ] && [ "$many" -le 9 ]; then
  OMP_NUM_THREADS=1 ranks "$many" "$program" doctor --strict --device cpu >out 2>err
  shares_cores $?
fi

# All pairs are measured.
OMP_NUM_THREADS=1 ranks 3 "$program" doctor --strict --device cpu --pairs --html pairs.html --junit doctor.xml --overwrite >out 2>err
agrees_pairs=$?
[ "$agrees_pairs" -le 1 ] || fail "--pairs: status $agrees_pairs: $(cat out err)"
has out "transport pt2pt" "Bandwidth in the node" "Latency in the node" "rank 2" "95 % of the median"
cases 9 False || fail "doctor.xml with pairs: $(cat doctor.xml)"
valid_junit doctor.xml
has out "no bisection among fewer than four"
[ "$many" -gt 3 ] || shares_cores "$agrees_pairs"
[ "$(grep -c '<rect' pairs.html)" = 12 ] || fail "pairs.html: not 2 maps of 3 pairs, both ways: $(cat pairs.html)"

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
maps = document["pairs"]["maps"]
assert [m["unit"] for m in maps] == ["GB/s each way", "us"], maps
assert all(len(m["pairs"]) == 6 and all(pair[2] > 0 for pair in m["pairs"]) for m in maps), maps
assert document["halving"]["head"], document' || fail "--halve --json: $(cat out err)"

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
  old_driver "$program" collective all_reduce -b 1K -e 1K --iters 5 --device cpu >out 2>err || fail "--device cpu: $(cat out err)"
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

# If other processes use all cores, the doctor and the preflight say so, the study stores it, and its report says it
# first.
if [ -n "$knows_load" ]; then
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
  [[ $(grep -m 1 'warning: ' err) == *'other processes use'* ]] || fail "not the first warning: $(cat err)"
  "$program" report busy.h5 >out 2>err || fail "report: $(cat err)"
  grep -q 'Busy machine: before ranks computed, other processes use .* busbw' <<<"$(tr '\n' ' ' <out | tr -s ' ')" ||
    fail "the report does not say it before its numbers: $(cat out)"
fi

[ "$failures" = 0 ] && echo "doctor: facts, findings, binding, pairs and preflight as they should be"
[ "$failures" = 0 ]
