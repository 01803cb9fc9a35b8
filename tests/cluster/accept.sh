#!/usr/bin/env bash
# NEEDS torch
# shardmark launch accept on four nodes. Healthy nodes are in service. Planted faults are found together, each by its
# evidence: a slow link, a rank that sends a wrong bit, a full disk. With another NCCL on one node, nothing
# is measured, and that node is out. Core speeds are not compared here, because there are more ranks than
# cores: tests/unit/analysis_nodes_test.cpp does that.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/accept.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"

make_nodes 4
per_node=$(($(nproc) / 4 + 1))    # more ranks than cores
set_on_nodes "$per_node"
mkdir "$dir/scratch"
cat >"$dir/accept.yaml" <<Y
name: accept
accept: {pairs: 8s, storage: 8MiB, folder: $dir/scratch}
sampling: {warmup_steps: 1, min_steps: 40, max_steps: 40}    # the median of few steps is that of what runs beside them
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: ddp, batch_size: 2}
collectives: {operation: all_reduce, bytes: 64KiB}
Y

# A library for ranks: those with FLIPS set have a bit stuck at 1 in every large message, and those with OTHER_NCCL set claim to use
# another version of NCCL.
cat >"$dir/faults.cpp" <<'C'
#include <dlfcn.h>
#include <mpi.h>
#include <cstdlib>
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  int size = 0;
  PMPI_Type_size(type, &size);
  if (std::getenv("FLIPS") != nullptr && static_cast<long>(count) * size > 100000)
    static_cast<char*>(const_cast<void*>(data))[static_cast<long>(count) * size / 2 + 3] |= 0x40;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
extern "C" int ncclGetVersion(int* version) {
  const int status = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_NEXT, "ncclGetVersion"))(version);
  if (std::getenv("OTHER_NCCL") != nullptr) *version = 21805;
  return status;
}
C
OMPI_CXX=c++ mpicxx -shared -fPIC -O1 -DOMPI_SKIP_MPICXX "$dir/faults.cpp" -o "$dir/faults.so" -ldl || fail "the faults do not compile"
# On every rank, in place of a container: with the faults that this node has.
cat >"$dir/with_faults" <<SH
#!/bin/sh
shift
case " \$FAULTS " in *" flips:\$(hostname) "*) export FLIPS=1 ;; esac
case " \$FAULTS " in *" nccl:\$(hostname) "*) export OTHER_NCCL=1 ;; esac
LD_PRELOAD=$dir/faults.so exec "$program" "\$@"
SH
chmod +x "$dir/with_faults"
flags=()
for flag in "${node_flags[@]}" --bind-to none -x FAULTS; do flags+=(--launcher-flag="$flag"); done

# accepts NAME STATUS: runs the suite with the faults of FAULTS.
accepts() {
  local status=0
  "$program" launch "$dir/accept.yaml" -n $((4 * per_node)) --ranks-per-node "$per_node" --container "$dir/with_faults" "${flags[@]}" -o "$dir/$1.h5" -- --device cpu \
    >"$dir/$1.log" 2>&1 || status=$?
  [[ $status == "$2" ]] || fail "$1: exit status $status, expected $2: $(grep -E "^out:|^watch| out, " "$dir/$1.log")"
}
says() { grep -qE -- "$2" <(tr -s '\n ' ' ' <"$dir/$1.log") || fail "$1: no words '$2': $(grep -A3 -E '^out:| out, ' "$dir/$1.log")"; }

export FAULTS=none
accepts healthy 0
if grep -qE '^out:' "$dir/healthy.log"; then fail "a healthy node is out: $(grep -E '^out:' "$dir/healthy.log")"; fi
says healthy "page: $dir/healthy.html; for CI: $dir/healthy.xml"
[[ $(grep -c '<testcase' "$dir/healthy.xml") == 4 && $(grep -c '<failure' "$dir/healthy.xml") == 0 ]] || fail "$(cat "$dir/healthy.xml")"
grep -q '<h3>Nodes</h3>' "$dir/healthy.html" || fail "the page has no verdicts"

shape 1gbit
shape_node 100mbit 3
nsenter --target "${node_pid[4]}" --mount mount -t tmpfs -o size=1m tmpfs "$dir/scratch"
export FAULTS='flips:node2'
accepts faults 1
says faults '3 nodes are out, '
says faults "out: node2: .*[0-9]+ elements? of what rank $per_node sent to [0-9]+ ranks arrived with another value"
says faults 'out: node3: its ranks? takes? [0-9]+ % longer for messages to other nodes'
says faults "out: node4: cannot write a file of 8 MiB in $dir/scratch: No space left on device"
[[ $(grep -c '<failure' "$dir/faults.xml") == 3 ]] || fail "$(cat "$dir/faults.xml")"
"$program" report "$dir/faults.h5" --table nodes >"$dir/table.log"
grep -qE '^node3 +[0-9]+ +out ' "$dir/table.log" || fail "$(cat "$dir/table.log")"

export FAULTS='nccl:node1'
accepts versions 1
says versions 'out: node1: NCCL 2\.18\.5 on node1, [0-9.]+ elsewhere'
says versions '1 node is out, '
"$program" report "$dir/versions.h5" --table nodes >"$dir/verdicts.log"
# Nothing is known of the others, unless other programs use their cores.
[[ $(grep -cE '^node[234] +[0-9]+ +(not tested|watch) ' "$dir/verdicts.log") == 3 ]] || fail "$(cat "$dir/verdicts.log")"
says versions 'nothing was tested, because the preflight found what would stop a run'
echo "verdicts on four nodes, after $SECONDS s"
