#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# shardmark doctor --pairs on six nodes. Halving names exactly the node whose link is slower. If a link between two
# switches is slow, which all pairs across them share, the bisection finds it and no node is blamed.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/bisection.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"

make_nodes 6
set_on_nodes 1

# links NAME [FLAG...]: writes the doctor's findings about links to $dir/NAME.log.
links() {
  local name=$1 status=0
  shift
  "${on_nodes[@]}" "$program" doctor --pairs --halve "$@" >"$dir/$name.log" 2>&1 || status=$?
  [[ $status -le 1 ]] || fail "doctor --pairs --halve ends with $status on six nodes"
  grep -q '^Across each cut' "$dir/$name.log" || fail "no table of cuts"
  sed -n '/^Bisection/,$p' "$dir/$name.log"
}
says() { grep -q "$2" "$dir/$1.log" || fail "$1: no line '$2'"; }
says_not() { ! grep -q "$2" "$dir/$1.log" || fail "$1: $(grep "$2" "$dir/$1.log")"; }

# measured NAME: measures and checks links with the function NAME. If the machine stops for a second, any link looks
# slow. So the test fails only if three measurements are wrong.
measured() {
  local try
  for try in 1 2 3; do
    if ("$1"); then return; fi
  done
  fail "$1: wrong in each of three measurements"
}

alike() {
  links alike
  says_not alike '^slow:'
  says alike '^note: bisection node1 .. node3 | node4 .. node6: .* of the sum of its links$'
}
shape_node 100mbit 1 2 3 4 5 6
measured alike

slow() {
  links slow
  says slow '^slow: node3 makes groups slow: with node[12456] it takes [2-6]\.'
  [[ $(grep -c 'makes groups slow' "$dir/slow.log") == 1 ]] || fail "others are named, too"
  says slow '^note: bisection .* because node3 and node6 are slow alone, too'
}
shape_node 20mbit 3
measured slow

narrow() {
  links narrow --topology "$dir/topology.conf"
  says narrow '^slow: bisection, leaf1 | the rest: .* (oversubscribed [23]\.'
  says narrow '^slow: node1 on leaf1 .. node6 on leaf2 are slow only together, and neither half is'
  says_not narrow 'makes groups slow'
}
# Three links of 100 Mbit/s share one link of 50 Mbit/s.
shape_node 100mbit 3
trunk 50mbit 4 5 6
printf 'SwitchName=leaf%d Nodes=node[%s]\n' 1 1-3 2 4-6 >"$dir/topology.conf"
measured narrow
echo "bisection and halving of six nodes, after $SECONDS s"
