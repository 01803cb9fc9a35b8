#!/usr/bin/env bash
# NEEDS torch
# A long sweep of tiny points over sizes, strategies, transports and numbers of ranks, on four ranks. The memory, open
# files and communicators of every rank do not grow once each configuration has been measured. SOAK=1: 2,000 points.
set -uo pipefail
# shellcheck source=tests/script.bash
source "$(dirname "$0")/../script.bash"
program=$(realpath "${1:?usage: tests/faults/many_points.sh path/to/shardmark}")
export OMP_NUM_THREADS=1
log=$dir/run.log

# Repetitions are interleaved, so the first tenth of the points has every configuration.
sizes=64 widths=16 strategies='[ddp, fsdp]' operations=all_reduce repeats=60
if [[ -n ${SOAK:-} ]]; then
  sizes='[64, 4KiB, 1MiB]' widths='[16, 64]' strategies='[single, ddp, fsdp, zero3]' repeats=50
  operations='[all_reduce, all_to_all, broadcast]'
fi
cat >"$dir/tiny.yaml" <<TEXT
name: tiny
repeats: $repeats
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: $widths, layers: 2}}
    strategy: $strategies
    ranks: [2, 4]
    batch_size: 2
collectives:
  - operation: $operations
    ranks: [2, 4]
    bytes: $sizes
  - operation: [all_reduce, reduce_scatter]
    ranks: 4
    transport: {hierarchical: {ranks_per_node: 2}}
    bytes: $sizes
TEXT
total=$("$program" plan "$dir/tiny.yaml" -n 4 --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["num_points"])')

command -v mpicxx >/dev/null || skip "no mpicxx to count communicators with: run jobs/bootstrap.sh"
mpicxx -shared -fPIC -O1 -std=c++20 "$home/tests/faults/count_communicators.cpp" -o "$dir/count.so" ||
  fail "the counter of communicators does not build"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
mpirun "${as_root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 4 \
  -x LD_PRELOAD="$dir/count.so" -x COUNT_COMMUNICATORS="$dir/communicators." \
  "$program" run "$dir/tiny.yaml" -o "$dir/tiny.h5" >"$log" 2>&1 &
job=$!
pids+=("$job")

finished() { grep -c '"record":' "$dir/tiny.h5.journal" 2>/dev/null; }
# Prints a line for each rank: its number, finished points of the study, resident memory in kB, open files, and
# communicators. It starts no processes, because the four ranks already share the cores.
declare -A rank_of
sample() {
  local pid key kb files communicators
  for pid in $(pgrep -f "^$program run $dir/tiny.yaml"); do
    [[ -n ${rank_of[$pid]:-} ]] ||
      rank_of[$pid]=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    while read -r key kb _ && [[ $key != VmRSS: ]]; do :; done <"/proc/$pid/status"
    files=("/proc/$pid/fd/"*)
    read -r communicators <"$dir/communicators.${rank_of[$pid]}"
    if [[ -L ${files[0]} ]]; then echo "${rank_of[$pid]} $1 $kb ${#files[@]} $communicators"; fi
  done 2>/dev/null
}
while kill -0 $job 2>/dev/null; do
  points=$(finished)
  if [[ ${points:-0} -ge $((total / 10)) ]]; then sample "$points"; fi
  sleep 0.1
done >"$dir/samples"
wait $job || fail "the sweep ended with exit status $?"
took=$SECONDS

"$python" "$home/tests/faults/check_growth.py" "$dir/samples" "$total" || fail "something grows with the number of points"
"$program" report "$dir/tiny.h5" >/dev/null || fail "no report"
echo "$total points on four ranks in $took s: memory, open files and communicators stay as they are"
