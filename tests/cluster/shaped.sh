#!/usr/bin/env bash
# NEEDS torch
# Measures a suite on two nodes with a link of a given rate. The nodes are namespaces of this machine with one rank
# each, bound to its own core. With only the program as an argument this is a test: no study may show more bandwidth
# than the link has.
#   tests/cluster/shaped.sh build/shardmark --rate 1gbit suites/predict.yaml -o results/shaped-1gbit.h5
# Without --rate, the link is as fast as the cores. Needs root and `jobs/bootstrap.sh --cluster`; otherwise it is
# skipped (77).
set -euo pipefail

program=$(realpath "${1:?usage: tests/cluster/shaped.sh path/to/shardmark [--rate 1gbit] [arguments of shardmark run]}")
shift
rate=
if [[ ${1:-} == --rate ]]; then
  [[ ${2:-} =~ ^[0-9.]+[kmg]bit$ ]] || { echo "shaped.sh: --rate takes a rate such as 500mbit or 2.5gbit" >&2; exit 2; }
  rate=$2
  shift 2
fi
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
[[ $(nproc) -ge 2 ]] || skip "needs two cores, one for each node"

make_nodes 2
set_on_nodes 1
if [[ -n $rate ]]; then shape "$rate"; fi
if [[ $# -gt 0 ]]; then
  "${on_nodes[@]}" "$program" run "$@"
  exit
fi

# The test: on a busy machine, measurements may be slower than the link, but never faster. Its network ports count what the
# formulas say.
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
"${on_nodes[@]}" "$program" run "$dir/tiny.yaml" -o "$dir/tiny.h5" >"$dir/run.log" 2>&1 ||
  fail "shardmark run does not run on two nodes"
"$python" "$home/tests/cluster/check_study.py" "$dir/tiny.h5" 5 --link 0.0125 --wire ||
  fail "the study is not one of two nodes with 100 Mbit/s between them"

# A switch whose queue is too short for what arrives drops packets. TCP sends them again, and counts them. (netem would lose
# packets at random, but not every kernel has it.)
"$program" report "$dir/tiny.h5" --table network >"$dir/network.txt" 2>&1 || fail "no table of the network's ports"
grep -q ' e0 sent most' "$dir/network.txt" || { cat "$dir/network.txt"; fail "the table does not say which port sent most"; }
tc qdisc replace dev "$tag-v2" root tbf rate 40mbit burst 5000 limit 12000
cat >"$dir/lossy.yaml" <<'TEXT'
name: lossy
ranks: 2
sampling: {warmup_steps: 1, min_steps: 10, max_steps: 10}
collectives: {operation: all_reduce, bytes: 1MiB}
TEXT
"${on_nodes[@]}" "$program" run "$dir/lossy.yaml" -o "$dir/lossy.h5" >"$dir/lossy.log" 2>&1 || fail "no run over a lossy link"
"$program" report "$dir/lossy.h5" >"$dir/lossy.txt" 2>&1 || fail "no report of a lossy link"
tr '\n' ' ' <"$dir/lossy.txt" | tr -s ' ' >"$dir/lossy.line"
grep -q 'lost packets: .* counted [1-9][0-9,]* packets sent again' "$dir/lossy.line" || {
  cat "$dir/lossy.txt"
  fail "packets were lost, and the report does not say so"
}
echo "two nodes, and no collective faster than the link between them, after $SECONDS s"
