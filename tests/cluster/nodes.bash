# Makes several nodes on one machine, for scripts that source this file: namespaces with their own network, host name,
# processes and shared memory, connected by a bridge. Everything is removed when the script ends. Needs root and
# iproute2.
# shellcheck source=tests/script.bash
source "$(dirname "${BASH_SOURCE[0]}")/../script.bash"

[[ $(id -u) == 0 ]] || skip "needs root, for network namespaces"
for name in ip nsenter unshare taskset; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done

tag=sm$$                       # prefix of our names in the kernel, which must be short; ends with our process id
net=10.$((100 + $$ / 250 % 100)).$(($$ % 250))    # node 1 is $net.1, and the machine itself is $net.254
nodes=()
declare -A node_pid            # process id of each node's first process, as seen by the script

# A node's first process is the init process of its process namespace. When it ends, all others of the node end, too.
remove_network() {
  local node
  wait
  for node in "${nodes[@]}"; do
    ip link del "$tag-v$node"
    ip netns del "$tag-$node"
  done
  ip link del "$tag"
}
at_end+=(remove_network)

# make_network COUNT: makes the networks of nodes 1 to COUNT, each with the interface e0.
make_network() {
  local node
  ip link add "$tag" type bridge 2>/dev/null || skip "the kernel or container allows no network bridge"
  ip addr add "$net.254/24" dev "$tag"
  ip link set "$tag" up
  for ((node = 1; node <= $1; ++node)); do
    ip netns add "$tag-$node" 2>/dev/null || skip "the kernel or container allows no network namespace"
    nodes+=("$node")
    ip link add "$tag-v$node" type veth peer name e0 netns "$tag-$node"
    ip link set "$tag-v$node" master "$tag" up
    ip -n "$tag-$node" addr add "$net.$node/24" dev e0
    ip -n "$tag-$node" link set e0 up
    ip -n "$tag-$node" link set lo up
  done
}

# start_node NODE COMMAND...: starts the node's first process in the background. Its host name is node1, node2, ... Its /sys
# shows its own network interface, and the cgroups of the machine.
start_node() {
  local node=$1
  shift
  nsenter --net="/run/netns/$tag-$node" unshare --uts --ipc --pid --fork --kill-child --mount --mount-proc \
    sh -c "mount -t tmpfs tmpfs /dev/shm; mkdir /dev/shm/cgroup; mount --rbind /sys/fs/cgroup /dev/shm/cgroup;
           mount -t sysfs sysfs /sys; mount --move /dev/shm/cgroup /sys/fs/cgroup; rmdir /dev/shm/cgroup; hostname node$node; exec $*" >/dev/null 2>&1 &
  node_pid[$node]=$!
  pids+=($!)
}

# make_nodes COUNT: makes networks and idle first processes, which mpirun reaches through $dir/agent: see on_nodes.
make_nodes() {
  local node
  make_network "$1"
  for node in "${nodes[@]}"; do
    # No packet is dropped here, because a sender waits for its own queue. So Reno, which every kernel has, never has to
    # slow down.
    nsenter --net="/run/netns/$tag-$node" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
    start_node "$node" "sh -c 'while sleep 1000; do :; done'"    # reaps orphans, as an init process should
  done
  print_agent >"$dir/agent"
  chmod +x "$dir/agent"
  for node in "${nodes[@]}"; do wait_for 30 "node$node" sh -c "[ \"\$('$dir/agent' node$node hostname)\" = node$node ]"; done
}

# Prints a program that mpirun uses in place of ssh: AGENT node2 COMMAND. The nodes share the cores of the machine.
print_agent() {
  echo '#!/bin/sh'
  echo 'host=$1; shift'
  echo "grep -qsx 1 /sys/class/net/$tag-v\${host#node}/carrier || { echo \"\$host: no route to host\" >&2; exit 255; }"
  echo 'case $host in'
  local node
  for node in "${!node_pid[@]}"; do
    echo "node$node) exec taskset -c $(((node - 1) % $(nproc))) nsenter --target ${node_pid[$node]} --net --uts --ipc --mount" \
      "--pid=/proc/${node_pid[$node]}/ns/pid_for_children env -C '$PWD' TMPDIR='$TMPDIR' ${mark:-} sh -c \"\$*\" ;;"
  done
  echo 'esac'
}

# set_on_nodes RANKS: sets on_nodes to a command that starts its arguments with this many ranks on each node, and
# node_flags to those of its flags that are about nodes. btl_tcp_flags 1 makes Open MPI use only send. With put, its
# requests would queue behind the data of the other direction (64 KiB in both directions at 1 Gbit/s took 1.3 ms instead
# of 0.56).
set_on_nodes() {
  local hosts ranks=$(($1 * ${#nodes[@]}))
  hosts=$(printf "node%d:$1," "${nodes[@]}")
  export OMP_NUM_THREADS=1
  node_flags=(--host "${hosts%,}" --mca plm_rsh_agent "$dir/agent" --mca oob_tcp_if_include "$net.0/24"
    --mca btl tcp,vader,self --mca btl_tcp_flags 1 --mca btl_tcp_if_include "$net.0/24")
  on_nodes=(mpirun --allow-run-as-root "${node_flags[@]}" --bind-to none -x OMP_NUM_THREADS
    --mca mpi_yield_when_idle $((ranks > $(nproc))) -n $ranks)
}

# shape RATE: limits the rate at which each node sends. The token bucket holds what the link sends in 200 us, and
# packets have half of that. Timers are late by tens of microseconds, and tokens beyond the bucket's size would be lost
# meanwhile.
shape() {
  local node bytes
  command -v tc >/dev/null || skip "no tc: run jobs/bootstrap.sh --cluster"
  bytes=$(awk -v rate="$1" 'BEGIN {
    unit = rate ~ /g/ ? 1e9 : rate ~ /m/ ? 1e6 : 1e3
    bytes = int(rate * unit / 8 * 200e-6)
    print (bytes < 3200 ? 3200 : bytes) }')
  for node in "${nodes[@]}"; do
    ip -n "$tag-$node" link set e0 gso_max_size $((bytes / 2 < 60000 ? bytes / 2 : 60000))
    tc -n "$tag-$node" qdisc replace dev e0 root tbf rate "$1" burst "$bytes" limit 4mb 2>/dev/null ||
      skip "the kernel has no token bucket filter (tc tbf)"
  done
}

# shape_node RATE NODE...: limits the rate at which these nodes send.
shape_node() {
  local rate=$1 node
  shift
  for node in "$@"; do tc -n "$tag-$node" qdisc replace dev e0 root tbf rate "$rate" burst 12500 limit 4mb; done
}

# trunk RATE NODE...: connects these nodes to a second switch, and limits the rate between the two switches. Its queues
# hold all packets that can be in flight, because here a sender does not wait for the queue.
trunk() {
  local rate=$1 node end
  shift
  ip link add "$tag-s" type bridge
  ip link add "$tag-t1" type veth peer name "$tag-t2"
  at_end+=(remove_trunk)
  ip link set "$tag-s" up
  ip link set "$tag-t1" master "$tag" up
  ip link set "$tag-t2" master "$tag-s" up
  for end in t1 t2; do tc qdisc replace dev "$tag-$end" root tbf rate "$rate" burst 12500 limit 64mb; done
  for node in "$@"; do ip link set "$tag-v$node" master "$tag-s"; done
}
remove_trunk() {
  ip link del "$tag-t1"
  ip link del "$tag-s"
}

# plug NODE up|down: connects or disconnects the node's network cable.
plug() { ip link set "$tag-v$1" "$2"; }
