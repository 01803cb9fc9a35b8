# Several nodes on one machine, for scripts to source: namespaces with their own network, host name, processes and
# shared memory, joined by a bridge. What was made goes when the script ends. Needs root and iproute2.

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

[[ $(id -u) == 0 ]] || skip "needs root, for network namespaces"
for name in ip nsenter unshare; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done

tag=sm$$                       # names of ours in the kernel are short and end with our process id
net=10.$((100 + $$ / 250 % 100)).$(($$ % 250))    # node 1 is $net.1, the machine itself $net.254
dir=$(mktemp -d)
pids=()                        # of what runs beside the script, ended with it
nodes=()
declare -A node_pid            # of each node's first process, as the script's own namespace counts

finish() {
  local status=$? node
  trap - EXIT
  if [[ $status != 0 && $status != 77 ]]; then tail -n 15 "$dir"/*.log 2>/dev/null || true; fi
  exec 2>/dev/null    # bash would announce every process that is killed
  # A node's first process is the first of its process namespace: what it started ends with it.
  for pid in "${pids[@]}"; do kill -KILL "$pid" || true; done
  wait || true
  for node in "${nodes[@]}"; do
    ip link del "$tag-v$node" || true
    ip netns del "$tag-$node" || true
  done
  ip link del "$tag" || true
  rm -rf "$dir"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local limit=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $limit ]] || fail "waited too long for $what"
    sleep 0.2
  done
}

# make_network NODE...: a network for each of these numbers, with the interface e0.
make_network() {
  local node
  ip link add "$tag" type bridge 2>/dev/null || skip "the kernel or container allows no network bridge"
  ip addr add "$net.254/24" dev "$tag"
  ip link set "$tag" up
  for node in "$@"; do
    ip netns add "$tag-$node" 2>/dev/null || skip "the kernel or container allows no network namespace"
    nodes+=("$node")
    ip link add "$tag-v$node" type veth peer name e0 netns "$tag-$node"
    ip link set "$tag-v$node" master "$tag" up
    ip -n "$tag-$node" addr add "$net.$node/24" dev e0
    ip -n "$tag-$node" link set e0 up
    ip -n "$tag-$node" link set lo up
  done
}

# start_node NODE COMMAND...: the node's first process, beside the script. Its host name is node1, node2 ...
start_node() {
  local node=$1
  shift
  nsenter --net="/run/netns/$tag-$node" unshare --uts --ipc --pid --fork --kill-child --mount --mount-proc \
    sh -c "mount -t tmpfs tmpfs /dev/shm; hostname node$node; exec $*" >/dev/null 2>&1 &
  node_pid[$node]=$!
  pids+=($!)
}

# print_agent: a program that mpirun can start others through: AGENT node2 COMMAND. Node n computes on core n - 1.
print_agent() {
  echo '#!/bin/sh'
  echo 'host=$1; shift'
  echo 'case $host in'
  local node
  for node in "${!node_pid[@]}"; do
    echo "node$node) exec taskset -c $((node - 1)) nsenter --target ${node_pid[$node]} --net --uts --ipc --mount" \
      "--pid=/proc/${node_pid[$node]}/ns/pid_for_children env -C '$PWD' sh -c \"\$*\" ;;"
  done
  echo 'esac'
}
