#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# Eight ranks run on four nodes with links of 1 Gbit/s. Hierarchical all-reduce is faster than the flat one, in one
# interleaved run. With SOAK=1, more sizes and repeats, and the whole quick suite on these nodes.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/hierarchical.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
repeats=5 sizes=8MiB num_sizes=1
if [[ -n ${SOAK:-} ]]; then repeats=7 sizes='[1MiB, 8MiB, 32MiB]' num_sizes=3; fi

make_nodes 4
set_on_nodes 2
shape 1gbit
cat >"$dir/flat.yaml" <<TEXT
name: flat
ranks: 8
repeats: $repeats
transport: [pt2pt, {hierarchical: {form: sharded}}, {hierarchical: {form: leader}}]
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5, time_limit: 30}
collectives:
  - operation: all_reduce
    bytes: $sizes
TEXT
"${on_nodes[@]}" "$program" run "$dir/flat.yaml" -o "$dir/flat.h5" >"$dir/flat.log" 2>&1 ||
  fail "shardmark run does not run on four nodes"
for form in sharded leader; do
  "$python" "$home/tests/cluster/check_study.py" "$dir/flat.h5" $((3 * repeats * num_sizes)) --nodes 4 \
    --ranks-per-node 2 --faster "hierarchical(form=$form" || fail "not faster in stages ($form)"
done
echo "eight ranks on four nodes with links of 1 Gbit/s, after $SECONDS s"
[[ -n ${SOAK:-} ]] || exit 0

cd "$home"
read -r points impossible < <("$program" plan suites/quick.yaml -n 8 --ranks 8 --json | "$python" -c '
import json, sys
plan = json.load(sys.stdin)
print(plan["num_points"], plan["num_impossible"])')
"${on_nodes[@]}" "$program" run suites/quick.yaml -o "$dir/quick.h5" --ranks 8 --steps 5 --set sampling.time_limit=2 \
  >"$dir/quick.log" 2>&1 || fail "the quick suite does not pass on four nodes"
"$python" "$home/tests/cluster/check_study.py" "$dir/quick.h5" "$points" --skipped "$impossible" --nodes 4 --ranks-per-node 2 ||
  fail "the study of the quick suite is wrong"
echo "the quick suite on eight ranks of four nodes: $points points, after $SECONDS s"
