#!/usr/bin/env bash
# NEEDS torch
# The network cable of a node is pulled at random moments, permanently or for two seconds. The nodes are two namespaces
# of this machine with a rank on each. faults.bash defines what must hold after each fault. Needs root and
# `jobs/bootstrap.sh --cluster`; otherwise it is skipped (77).
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
# Open MPI's daemons notice a lost node when TCP does: here after 13 s instead of 15 minutes on an open connection, and
# after 7 s instead of 2 minutes while they connect. `launch` starts the ranks once more while the cable is out, and the
# daemon of the node that still has its cable then tries to reach the launcher. Without the second setting it stayed up
# to 73 s, unless the kernel had forgotten the launcher's hardware address.
for node in 1 2; do
  nsenter --net="/run/netns/$tag-$node" \
    sh -c 'echo 5 >/proc/sys/net/ipv4/tcp_retries2; echo 2 >/proc/sys/net/ipv4/tcp_syn_retries'
done

# No rank is told that a peer is gone, so the watchdog must find it.
flags_unplug_a_node=(--timeout 5)
fault_unplug_a_node() {
  random 2
  unplugged=$((1 + chosen))
  plug "$unplugged" down
  end_of_job 300
  [[ ! -e $study || -e $study.journal ]]    # or the study was complete by then, and the node was not needed
}
after_unplug_a_node() {
  plug "$unplugged" up
  [[ $landed == yes ]] || return 0
  grep -q 'behind: .* on node[12]\|did not find each other' "$log" ||    # ranks cannot query the other node while they start
    fail "$kind: the watchdog names no node: $(tail -n 5 "$log")"
}

# A short interruption costs time and has no other effect.
fault_unplug_for_2_s() {
  random 2
  local node=$((1 + chosen))
  plug "$node" down
  sleep 2
  plug "$node" up
}
after_unplug_for_2_s() { [[ $status == 0 ]] || fail "$kind: the run did not outlive it: $(tail -n 3 "$log")"; }

strike_all unplug_a_node unplug_for_2_s
