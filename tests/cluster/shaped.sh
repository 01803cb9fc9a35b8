#!/usr/bin/env bash
# NEEDS torch
# Measures a suite on two nodes with a link of a given rate: namespaces of this machine, one rank on each, bound to a
# core of its own. With the program alone it is a test: no study may show more than the link gives.
#   tests/cluster/shaped.sh build/shardmark --rate 1gbit suites/predict.yaml -o results/shaped-1gbit.h5
# Without --rate the link is as fast as the cores. Needs root and `jobs/bootstrap.sh --cluster`; skipped (77) without.
set -euo pipefail

program=$(realpath "${1:?usage: tests/cluster/shaped.sh path/to/shardmark [--rate 1gbit] [arguments of shardmark run]}")
shift
rate=
if [[ ${1:-} == --rate ]]; then
  [[ ${2:-} =~ ^[0-9.]+[kmg]bit$ ]] || { echo "shaped.sh: --rate takes a rate such as 500mbit or 2.5gbit" >&2; exit 2; }
  rate=$2
  shift 2
fi
home=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cluster/nodes.bash
source "$home/tests/cluster/nodes.bash"
for name in tc taskset; do command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"; done
[[ $(nproc) -ge 2 ]] || skip "needs two cores, one for each node"

# shape RATE: each node sends at most so much. The bucket of tokens holds what the link sends in 200 us, and packets are
# half of that: timers come late, by tens of microseconds, and what a bucket cannot hold meanwhile is lost.
shape() {
  local node bytes
  bytes=$(awk -v rate="$1" 'BEGIN {
    unit = rate ~ /g/ ? 1e9 : rate ~ /m/ ? 1e6 : 1e3
    bytes = int(rate * unit / 8 * 200e-6)
    print (bytes < 3200 ? 3200 : bytes) }')
  for node in 1 2; do
    ip -n "$tag-$node" link set e0 gso_max_size $((bytes / 2 < 60000 ? bytes / 2 : 60000))
    tc -n "$tag-$node" qdisc replace dev e0 root tbf rate "$1" burst "$bytes" limit 4mb 2>/dev/null ||
      skip "the kernel has no token bucket filter (tc tbf)"
  done
}

# run ARGUMENTS...: shardmark run with one rank on each node. Flag 1: Open MPI shall send and not also put, whose requests
# would queue behind the data of the other direction (64 KiB both ways at 1 Gbit/s took 1.3 ms instead of 0.56).
run() {
  OMP_NUM_THREADS=1 mpirun --allow-run-as-root --host node1:1,node2:1 -n 2 --bind-to none \
    --mca plm_rsh_agent "$dir/agent" --mca oob_tcp_if_include "$net.0/24" \
    --mca btl tcp,self --mca btl_tcp_flags 1 --mca btl_tcp_if_include "$net.0/24" -x OMP_NUM_THREADS "$program" run "$@"
}

make_network 1 2
for node in 1 2; do
  # Nothing is dropped here, as a sender waits for its own queue: Reno, which every kernel has, never has to slow down.
  nsenter --net="/run/netns/$tag-$node" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
  start_node $node sleep infinity
done
print_agent >"$dir/agent"
chmod +x "$dir/agent"
for node in 1 2; do wait_for 10 "node$node" sh -c "'$dir/agent' node$node hostname | grep -qx node$node"; done
if [[ -n $rate ]]; then shape "$rate"; fi
if [[ $# -gt 0 ]]; then
  run "$@"
  exit
fi

# The test. A busy machine may be slower than its link, but never faster.
shape 100mbit
cat >"$dir/tiny.yaml" <<'TEXT'
name: tiny
ranks: 2
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5}
training:
  - model: mlp
    strategy: [ddp, fsdp]
    batch_size: 8
collectives:
  - operation: [all_reduce, all_gather, reduce_scatter]
    bytes: 1MiB
TEXT
run "$dir/tiny.yaml" -o "$dir/tiny.h5" >"$dir/run.log" 2>&1 || fail "shardmark run does not run on two nodes"
"$home/.venv/bin/python" "$home/tests/cluster/check_study.py" "$dir/tiny.h5" 5 --link 0.0125 ||
  fail "the study is not one of two nodes with 100 Mbit/s between them"
echo "two nodes, and no collective faster than the link between them, after $SECONDS s"
