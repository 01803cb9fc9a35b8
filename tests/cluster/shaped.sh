#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
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
"${on_nodes[@]}" "$program" run "$dir/tiny.yaml" -o "$dir/tiny.h5" >"$dir/run.log" 2>&1 ||
  fail "shardmark run does not run on two nodes"
"$python" "$home/tests/cluster/check_study.py" "$dir/tiny.h5" 5 --link 0.0125 ||
  fail "the study is not one of two nodes with 100 Mbit/s between them"
echo "two nodes, and no collective faster than the link between them, after $SECONDS s"
