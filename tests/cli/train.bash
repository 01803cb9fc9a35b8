# For tests of shardmark train, to be sourced: a folder of their own to run in, runs on any number of ranks, and what the last
# of them said, in `out`. A script sets `common`, the flags of all its runs; `job` is a run in the background, if there is one.
set -euo pipefail
program=$(readlink -f "$1")
home=$PWD
scratch=$(mktemp -d)
job=
common=()
cd "$scratch"
export OMP_NUM_THREADS=1
# Without a search for networks, which takes a third of the time to start.
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1)

fail() { echo "FAILED: $*"; tail -n 30 out; exit 1; }
# shellcheck source=tests/waiting.bash
source "$home/tests/waiting.bash"
says() { grep -qF -- "$1" out || fail "it does not say: $1"; }
# The ranks that this script has started, the lowest process first.
ours() {
  pgrep -f "$program train" | while read -r pid; do
    [[ $(readlink "/proc/$pid/exe") != "$program-torch" || $(readlink "/proc/$pid/cwd") != "$scratch" ]] || echo "$pid"
  done
}
# shellcheck disable=SC2046  # numbers of processes
finish() {
  if [[ -n $job ]]; then kill -KILL $(ours) $(pgrep -P "$job") "$job"; fi
  rm -rf "$scratch"
} 2>/dev/null
trap finish EXIT

# train RANKS STATUS FLAG...: one rank alone needs no launcher.
train() {
  local n=$1 expected=$2 start=() status=0
  shift 2
  ((n == 1)) || start=("${mpirun[@]}" -n "$n")
  "${start[@]}" "$program" train "${common[@]}" "$@" >out 2>&1 || status=$?
  [[ $status == "$expected" ]] || fail "train $*: exit status $status instead of $expected"
}
# trains RANKS FLAG...: in the background, as `job`.
trains() {
  local n=$1
  shift
  : >out    # the lines of the run before are none of this one
  "${mpirun[@]}" -n "$n" "$program" train "${common[@]}" "$@" >out 2>&1 &
  job=$!
}
# ends: how the run in the background did, in `status`.
ends() {
  status=0
  wait "$job" || status=$?
  job=
}
# refuses TEXT FLAG...: one line of all `ranks` together (1), status 2, before the first step.
refuses() {
  local words=$1
  shift
  train "${ranks:-1}" 2 --steps 3 "$@"
  [[ $(grep -v '^shardmark: warning: ' out | grep -c '^shardmark: ') == 1 ]] || fail "$*: not one line"
  says "$words"
  if grep -q '^ *1 ' out; then fail "it trained before it refused $*"; fi
}
# A small disk needs a mount of our own: a script that calls this first starts again in a place where it may have one.
with_own_mounts() {
  if [[ -n ${OWN_MOUNTS:-} ]]; then return; fi
  if unshare --mount mount -t tmpfs tmpfs /mnt 2>/dev/null; then
    rm -rf "$scratch"
    cd "$home"
    OWN_MOUNTS=1 exec unshare --mount bash "$0" "$program"
  fi
  echo "left out: small disks, for the kernel or container allows no mounts of one's own"
}
