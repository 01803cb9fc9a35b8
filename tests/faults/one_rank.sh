#!/usr/bin/env bash
# NEEDS torch
# One rank of two fails alone (fail_a_call.cpp is preloaded), in calls of its messages, its communicators and its memory: the
# other rank is left in no wait. Either all agree on the outcome of the point, and the sweep goes on, or the job ends within
# seconds, status 3, with one line that names the rank and what it was in; under launch the point is tried once more, and the
# sweep goes on. The calls are the first, the third, the ninth ...; SOAK=1: every call of a whole point, and more strategies.
#   tests/faults/one_rank.sh PROGRAM [KIND...]    only these kinds of calls
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/../cli/stand_ins.bash"
shift
kinds=(MPI_Comm_split memory MPI_Isend MPI_Allreduce MPI_Bcast)
if [[ $# -gt 0 ]]; then kinds=("$@"); fi
every_call=${SOAK:+1}
mpicxx -shared -fPIC -O1 -std=c++20 -DOMPI_SKIP_MPICXX "$home/tests/faults/fail_a_call.cpp" -o fail.so -ldl
export OMP_NUM_THREADS=1
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi

# write_suite STRATEGIES [PRECISION [STAGES]]: a step, and nothing that depends on time.
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

# The flags of mpirun that make rank 0 or 1 fail in its n-th call of a kind.
failing() {
  printf '%s\n' -x "LD_PRELOAD=$dir/fail.so" -x "FAIL_A_CALL=$1 $2 $3" -x "FAIL_AFTER=$dir/x.h5.journal" -x "FAIL_ONCE=$dir/armed"
}

# Of the point; where the reference on one device lacked memory, a model of fewer layers was compared, or nothing was.
outcome() {
  "$program" export x.h5 --json - | python3 -c '
import json, sys
point = json.load(sys.stdin)["points"][0]
less = "unverified: one device does not have" in point["verified"] or point["verified"].endswith(" layers")
print("compared with less" if less else point["outcome"])'
}

# Is this how a run may end whose rank $1 failed in a call of kind $2?
expect_one_line() {
  if [[ $2 == memory && $status == 0 ]]; then
    [[ $(outcome) =~ ^(out_of_memory|compared with less)$ ]] || fail "the outcome is $(outcome)"
    return
  fi
  ends 3; has "failed: rank $1 on" "; the others wait for it, so the job ends"
  [[ $(grep -v '^shardmark: warning: ' <<<"$said" | grep -c '^shardmark: ') == 1 ]] || fail "not one line"
  [[ -e x.h5.journal || -e x.h5 ]] || fail "no study is left"
}

# fail_calls KIND: the calls of that kind, until none is left to fail, by turns on rank 1 and rank 0.
fail_calls() {
  local kind=$1 n rank=0 flags
  for ((n = 1; ; n += every_call ? 1 : 2 * n)); do
    rank=$((1 - rank))
    rm -f x.h5*
    touch armed
    mapfile -t flags < <(failing "$kind" "$rank" "$n")
    runs timeout 60 mpirun "${as_root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "${flags[@]}" -n 2 \
      "$program" run suites/tiny.yaml -o x.h5 --quiet
    if [[ -e armed ]]; then
      ends 0
      break
    fi
    expect_one_line "$rank" "$kind"
    grep -o ' in .*; the others' <<<"$said" | sed "s/^/    $kind $n:/; s/; the others$//" || echo "    $kind $n: an outcome of the point"
  done
  if [[ $n -gt 1 ]]; then
    tested[$kind]=1
  elif [[ $kind != MPI_Comm_split ]]; then  # a team of all ranks needs no communicator of its own
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

# Under launch: the failure is the first attempt's, and the sweep is whole.
write_suite "ddp, zero3"
rm -f x.h5*
touch armed
mapfile -t flags < <(failing MPI_Isend 1 6)
runs timeout 120 "$program" launch suites/tiny.yaml -n 2 --launcher-flag=--oversubscribe "${flags[@]/#/--launcher-flag=}" -o x.h5
ends 0; has "it is tried once more" "first attempt failed: failed: rank 1 on"
[[ ! -e armed ]] || fail "nothing failed"
"$program" export x.h5 --json - | python3 -c '
import json, sys
points = json.load(sys.stdin)["points"]
assert [p["outcome"] for p in points] == ["ok"] * 2, points
assert sorted(p["attempts"] for p in points) == [1, 2], points'
echo "one_rank: ok"
