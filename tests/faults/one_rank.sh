#!/usr/bin/env bash
# NEEDS torch
# One of two ranks fails alone (fail_a_call.cpp is preloaded) in calls for messages, communicators and memory. The other
# rank is never left waiting. Either all ranks agree on the outcome of the point and the sweep continues, or the job
# ends within seconds with status 3 and one line that names the rank and what it was doing. Under launch, the point is
# then tried once more, and the sweep continues. The first, third, ninth, ... call fails, one in each run. With SOAK=1,
# every call of a whole point fails in turn, with more strategies.
#   tests/faults/one_rank.sh PROGRAM [KIND...]    only these kinds of calls
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/../cli/stand_ins.bash"
shift
kinds=(MPI_Comm_split memory MPI_Isend MPI_Iallreduce MPI_Ibcast)
if [[ $# -gt 0 ]]; then kinds=("$@"); fi
every_call=${SOAK:+1}
mpicxx -shared -fPIC -O1 -std=c++20 -DOMPI_SKIP_MPICXX "$home/tests/faults/fail_a_call.cpp" -o fail.so -ldl
export OMP_NUM_THREADS=1
# shellcheck source=tests/loaded.bash
source "$home/tests/loaded.bash"
mkdir tools
load_program "$program" "$dir/tools" "$dir/fail.so"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi

# write_suite STRATEGIES [PRECISION [STAGES]]: a suite with one step and nothing that depends on time.
write_suite() {
  cat >suites/tiny.yaml <<Y
name: tiny
ranks: [2]
sampling: {warmup_steps: 0, min_steps: 1, max_steps: 1}
training:
  - model: {mlp: {features: 8, width: 16, layers: 3}}
    strategy: [$1]
    precision: ${2:-fp32}
    pipeline: [${3:-1}]
    accumulation: ${3:-1}
    batch_size: 2
Y
}

# Prints the flags of mpirun that make a rank fail in its n-th call of a kind.
failing() {
  printf '%s\n' -x "FAIL_A_CALL=$1 $2 $3" -x "FAIL_AFTER=$dir/x.h5.journal" -x "FAIL_ONCE=$dir/armed"
}

# Prints the outcome of the point. If the reference on one device ran out of memory, a model with fewer layers was
# compared, or nothing.
outcome() {
  "$program" report x.h5 --raw --json | python3 -c '
import json, sys
point = json.load(sys.stdin)["points"][0]
less = "unverified: one device does not have" in point["verified"] or point["verified"].endswith(" layers")
print("compared with less" if less else point["outcome"])'
}

# Whether a run may end in this way if rank $1 failed in a call of kind $2.
expect_one_line() {
  if [[ $2 == memory && $status == 0 ]]; then
    [[ $(outcome) =~ ^(out_of_memory|compared with less)$ ]] || fail "the outcome is $(outcome)"
    return
  fi
  ends 3; has "failed: rank $1 on" "; the others wait for it, so the job ends"
  [[ $(grep -v '^shardmark: warning: ' <<<"$said" | grep -c '^shardmark: ') == 1 ]] || fail "not one line"
  [[ -e x.h5.journal || -e x.h5 ]] || fail "no study is left"
}

# fail_calls KIND: makes calls of that kind fail, alternating between rank 1 and rank 0, until there are no more.
fail_calls() {
  local kind=$1 n rank=0 flags
  for ((n = 1; ; n += every_call ? 1 : 2 * n)); do
    rank=$((1 - rank))
    rm -f x.h5*
    touch armed
    mapfile -t flags < <(failing "$kind" "$rank" "$n")
    ((${#loaded[@]} > 1)) || flags+=(-x "LD_PRELOAD=$dir/fail.so")
    runs timeout 600 mpirun "${as_root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "${flags[@]}" -n 2 \
      "${loaded[@]}" run suites/tiny.yaml -o x.h5 --quiet
    if [[ -e armed ]]; then
      ends 0
      break
    fi
    expect_one_line "$rank" "$kind"
    grep -o ' in .*; the others' <<<"$said" | sed "s/^/    $kind $n:/; s/; the others$//" || echo "    $kind $n: an outcome of the point"
  done
  if [[ $n -gt 1 ]]; then
    tested[$kind]=1
  elif [[ $kind != MPI_Comm_split ]]; then  # a process group of all ranks needs no communicator of its own
    fail "no call of $kind: nothing was tested"
  fi
}

declare -A tested
strategies=("zero3 fp32 1" "{fsdp: {group: 1, shard: optimizer}} fp32 1" "ddp fp32 2")
if [[ -n ${SOAK:-} ]]; then
  strategies+=("ddp fp32 1" "{ddp: {reduction: topk}} fp32 1" "{fsdp: {shard: gradients}} fp32 1" "zero3 fp32 2")
fi
for strategy in "${strategies[@]}"; do
  name_and_precision=${strategy% *}
  write_suite "${name_and_precision% *}" "${name_and_precision##* }" "${strategy##* }"
  for kind in "${kinds[@]}"; do
    echo "$strategy, $kind:"
    fail_calls "$kind"
  done
done
for kind in "${kinds[@]}"; do
  [[ -n ${tested[$kind]:-} ]] || fail "no call of $kind in any strategy: nothing was tested"
done

# Under launch, the first attempt has the failure, and the sweep is complete.
write_suite "ddp, zero3"
rm -f x.h5*
touch armed
mapfile -t flags < <(failing MPI_Isend 1 6)
flags+=(-x "LD_PRELOAD=$dir/fail.so")
runs timeout 600 "$program" launch suites/tiny.yaml -n 2 --launcher-flag=--oversubscribe "${flags[@]/#/--launcher-flag=}" -o x.h5
ends 0; has "it is tried once more" "first attempt failed: failed: rank 1 on"
[[ ! -e armed ]] || fail "nothing failed"
"$program" report x.h5 --raw --json | python3 -c '
import json, sys
points = json.load(sys.stdin)["points"]
assert [p["outcome"] for p in points] == ["ok"] * 2, points
assert sorted(p["attempts"] for p in points) == [1, 2], points'
echo "one_rank: ok"
