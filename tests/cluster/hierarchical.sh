#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# Eight ranks run on four nodes with links of 1 Gbit/s. Hierarchical all-reduce is faster than the flat one, in one
# interleaved run. Dispatch and combine, also of tokens that travel once to each node, are exact and move the bytes of the
# formula. With SOAK=1, more sizes and repeats, and the whole quick suite on these nodes.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/hierarchical.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
repeats=3 sizes=8MiB num_sizes=1 starts=1    # starts: of what has no speeds to compare
if [[ -n ${SOAK:-} ]]; then repeats=7 sizes='[1MiB, 8MiB, 32MiB]' num_sizes=3 starts=3; fi

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

cat >"$dir/tokens.yaml" <<TEXT
name: tokens
ranks: 8
repeats: $starts
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5, time_limit: 30}
collectives:
  - operation: [dispatch, combine]
    parts: {experts: {width: 1024, experts: 32, top_k: 8, once_per: [copy, rank, node]}}
    bytes: 512KiB
TEXT
"${on_nodes[@]}" "$program" run "$dir/tokens.yaml" -o "$dir/tokens.h5" >"$dir/tokens.log" 2>&1 || fail "dispatch and combine on four nodes"
"$program" report "$dir/tokens.h5" --raw --json >"$dir/tokens.json"
"$program" report "$dir/tokens.h5" --table collectives >"$dir/tokens.txt"
grep -q 'between nodes' "$dir/tokens.txt" || fail "the table has no rates between nodes"
"$python" - "$dir/tokens.json" <<'P' || fail "tokens once to each node"
import collections, json, re, statistics, sys
times = collections.defaultdict(list)
for p in json.load(open(sys.argv[1]))["points"]:
    once_per = re.search(r"once_per=(\w+)", p["parts"])[1]
    assert p["outcome"] == "ok" and p["num_wrong"] == 0, p
    assert abs(p["traffic_bytes"] / p["predicted_traffic_bytes"] - 1) < 1e-9, (once_per, p["traffic_bytes"], p["predicted_traffic_bytes"])
    times[p["operation"], once_per].append(p["step"])
for operation in ("dispatch", "combine"):
    copy, rank, node = (statistics.median(times[operation, form]) for form in ("copy", "rank", "node"))
    print(f"{operation}: once per copy {1e3 * copy:.1f} ms, rank {1e3 * rank:.1f}, node {1e3 * node:.1f}")
P
echo "dispatch and combine on four nodes, after $SECONDS s"

# A mixture whose experts all eight ranks share, whose tokens travel once for each expert, to each rank, and to each node.
cat >"$dir/mixture.yaml" <<TEXT
name: mixture
ranks: 8
repeats: $starts
sampling: {warmup_steps: 1, min_steps: 4, max_steps: 4, time_limit: 30}
training:
  - model:
      moe: {layers: 2, width: 256, heads: 4, kv_heads: 2, inner: 128, sequence: 64, vocabulary: 512, experts: 16, top_k: 8, routing: balanced}
    strategy: ddp
    expert: 8
    dispatch: [copy, rank, 2]
    batch_size: 1
TEXT
"${on_nodes[@]}" "$program" run "$dir/mixture.yaml" -o "$dir/mixture.h5" >"$dir/mixture.log" 2>&1 || fail "a mixture on four nodes"
"$program" report "$dir/mixture.h5" --raw --json >"$dir/mixture.json"
"$python" - "$dir/mixture.json" <<'P' || fail "a mixture whose tokens travel once to each node"
import collections, json, statistics, sys
times = collections.defaultdict(list)
for p in json.load(open(sys.argv[1]))["points"]:
    assert p["outcome"] == "ok" and p["verified"] == "equal to one device", p
    assert abs(p["traffic_bytes"] / p["predicted_traffic_bytes"] - 1) < 1e-9, (p["dispatch"], p["traffic_bytes"], p["predicted_traffic_bytes"])
    times[p["dispatch"]].append(p["step"])
print("a mixture's step: " + ", ".join(f"once per {word} {1e3 * statistics.median(times[key]):.0f} ms"
                                       for key, word in ((0, "copy"), (1, "rank"), (2, "node"))))
P
echo "a mixture on four nodes, after $SECONDS s"
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
