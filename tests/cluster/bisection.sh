#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# shardmark doctor --pairs --halve on six nodes. If a link between two switches is slow, which all pairs across them share,
# the bisection finds it and no node is blamed. pairs.sh has a node whose own link is slow, among four nodes; with SOAK=1
# there is one among six, too.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/bisection.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
# shellcheck source=tests/cluster/links.bash
source "$(dirname "$0")/links.bash"

make_nodes 6
set_on_nodes 1

slow() {
  links slow
  says slow '^slow: node3 makes groups slow: with node[12456] it takes [2-6]\.'
  [[ $(grep -c 'makes groups slow' "$dir/slow.log") == 1 ]] || fail "others are named, too"
  says slow '^note: bisection .* because node3 and node6 are slow alone, too'
}
if [[ -n ${SOAK:-} ]]; then
  shape_node 100mbit 1 2 3 4 5 6
  shape_node 20mbit 3
  measured slow
fi

narrow() {
  links narrow --topology "$dir/topology.conf"
  says narrow '^slow: bisection, leaf1 | the rest: .* (oversubscribed [23]\.'
  says narrow '^slow: node1 on leaf1 .. node6 on leaf2 are slow only together, and neither half is'
  says_not narrow 'makes groups slow'
}
# Three links of 400 Mbit/s share one link of 200 Mbit/s.
shape 400mbit
trunk 200mbit 4 5 6
printf 'SwitchName=leaf%d Nodes=node[%s]\n' 1 1-3 2 4-6 >"$dir/topology.conf"
measured narrow
echo "bisection and halving of six nodes, after $SECONDS s"
