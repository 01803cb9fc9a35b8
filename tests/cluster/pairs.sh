#!/usr/bin/env bash
# NEEDS torch
# ALONE it compares speeds.
# shardmark doctor --pairs --halve on four nodes. With equal links no node is named, and the bisection carries the sum of
# its links. If one node's link is ten times slower, pairs and halving name this node alone, and the bisection says that it
# is slow because of this link.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/pairs.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
# shellcheck source=tests/cluster/links.bash
source "$(dirname "$0")/links.bash"

make_nodes 4
set_on_nodes 1

# What pairs say holds in every measurement. Only bisection and halving may be measured again.
named_by_pairs() { sed -n '/^Bandwidth/,/^Bisection/s/^slow: //p' "$dir/$1.log"; }
wrong_pairs() {
  echo "WRONG: $*"
  touch "$dir/wrong_pairs"
}

alike() {
  links alike --overwrite --html "$dir/alike.html"
  [[ -z $(named_by_pairs alike) ]] || wrong_pairs "links are equal, but somebody is named: $(named_by_pairs alike)"
  says_not alike '^slow:'
  says alike '^note: bisection node1 and node2 | node3 and node4: .* of the sum of its links$'
}
shape 1gbit
measured alike

slow() {
  links slow --overwrite --html "$dir/slow.html"
  [[ $(named_by_pairs slow) == "node3 is slow with all other nodes: "* && $(named_by_pairs slow | wc -l) == 1 ]] ||
    wrong_pairs "node3's link is slow, and these are named: $(named_by_pairs slow)"
  says slow '^slow: node3 makes groups slow: with node[124] it takes \([2-9]\|1[01]\)\.'
  [[ $(grep -c '^slow:' "$dir/slow.log") == 2 ]] || fail "others are named, too: $(grep '^slow:' "$dir/slow.log")"
  says slow '^note: bisection .* because node1 and node3 are slow alone, too'
  [[ $(grep -c '<rect' "$dir/slow.html") == 24 ]] || fail "the page does not show two maps of four nodes"
}
shape_node 100mbit 3
measured slow
[[ ! -e $dir/wrong_pairs ]] || fail "pairs name others than node3"
echo "pairs, bisection and halving of four nodes, after $SECONDS s"
