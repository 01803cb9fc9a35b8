#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# shardmark doctor --pairs on four nodes. With equal links no node is named; a node whose link is ten times slower is.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/pairs.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"

make_nodes 4
set_on_nodes 1

# pairs NAME: writes the doctor's findings about nodes to $dir/NAME.log. The status is 1 if something should be fixed.
pairs() {
  local status=0
  "${on_nodes[@]}" "$program" doctor --pairs --html "$dir/$1.html" >"$dir/$1.log" 2>&1 || status=$?
  [[ $status -le 1 ]] || fail "doctor --pairs ends with $status on four nodes"
  grep -q 'Bandwidth between nodes' "$dir/$1.log" || fail "no map of the nodes"
}

shape 1gbit
pairs alike
! grep -q '^slow:' "$dir/alike.log" || fail "links are equal, but somebody is named"

shape_node 100mbit 3
pairs slow
grep -q '^slow: node3 is slow with all other nodes: ' "$dir/slow.log" || fail "node3's link is slow, and nobody says so"
[[ $(grep -c '^slow:' "$dir/slow.log") == 1 ]] || fail "others are named, too: $(grep '^slow:' "$dir/slow.log")"
[[ $(grep -c '<rect' "$dir/slow.html") == 24 ]] || fail "the page does not show two maps of four nodes"
sed -n '/^Bandwidth/,/^$/p; /^ .*node/p; /^slow/p' "$dir/slow.log"
echo "pairs of four nodes, after $SECONDS s"
