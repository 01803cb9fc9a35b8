#!/usr/bin/env bash
# NEEDS torch
# The cable of a node is pulled at random moments, for good or for two seconds: two namespaces of this machine with a rank
# on each. See faults.bash for what must hold after each. Needs root and `jobs/bootstrap.sh --cluster`; skipped (77) without.
set -uo pipefail
# shellcheck source=tests/faults/faults.bash
source "$(dirname "$0")/faults.bash"
# shellcheck source=tests/cluster/nodes.bash
source "$home/tests/cluster/nodes.bash"
make_nodes 2
set_on_nodes 1
on_ranks=("${on_nodes[@]}")
survivable=(unplug_for_2_s)
launcher_flags=("${node_flags[@]}")
prefix=(nsenter --net="/run/netns/$tag-1")    # started on the first node, as in a job
# Open MPI's daemons notice a lost node when TCP does: here after 13 s, not after 15 minutes.
for node in 1 2; do nsenter --net="/run/netns/$tag-$node" sh -c 'echo 5 >/proc/sys/net/ipv4/tcp_retries2'; done

# No rank hears that a peer is gone, so this is the watchdog's to find.
flags_unplug_a_node=(--timeout 5)
fault_unplug_a_node() {
  random 2
  unplugged=$((1 + chosen))
  plug "$unplugged" down
  end_of_job 300
  [[ ! -e $study || -e $study.journal ]]    # or it was complete by then, and nobody missed the node
}
after_unplug_a_node() {
  plug "$unplugged" up
  [[ $landed == yes ]] || return 0
  grep -q 'behind: .* on node[12]\|did not find each other' "$log" ||    # while they come up nobody can ask the other node
    fail "$kind: the watchdog names no node: $(tail -n 5 "$log")"
}

# A short break costs time and nothing else.
fault_unplug_for_2_s() {
  random 2
  local node=$((1 + chosen))
  plug "$node" down
  sleep 2
  plug "$node" up
}
after_unplug_for_2_s() { [[ $status == 0 ]] || fail "$kind: the run did not outlive it: $(tail -n 3 "$log")"; }

strike_all unplug_a_node unplug_for_2_s
