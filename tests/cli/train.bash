# Sourced by tests of shardmark train. Provides a temporary folder, runs on any number of ranks, and the output of the
# last run in `out`. A script sets `common`, the flags of all its runs. `job` is a run in the background, if there is
# one.
set -euo pipefail
program=$(readlink -f "$1")
home=$PWD
scratch=$(mktemp -d)
job=
common=()
cd "$scratch"
export OMP_NUM_THREADS=1
# Disables the search for networks, which takes a third of the start time. One rank alone starts no daemon of Open MPI,
# and has a session folder of its own.
tools=$(mktemp -d)    # outside the folder whose files are the user's
alone=(env OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self OMPI_MCA_orte_tmpdir_base="$tools")
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1)

fail() { echo "FAILED: $*"; tail -n 30 out; exit 1; }
# shellcheck source=tests/waiting.bash
source "$home/tests/waiting.bash"
# shellcheck source=tests/loaded.bash
source "$home/tests/loaded.bash"
says() { grep -qF -- "$1" out || fail "it does not say: $1"; }
# Prints the processes of the ranks that this script has started.
ours() {
  pgrep -f "$program train" | while read -r pid; do
    [[ $(readlink "/proc/$pid/exe") != "$program-torch" || $(readlink "/proc/$pid/cwd") != "$scratch" ]] || echo "$pid"
  done
}
# process_of RANK: prints the process of this rank. Ranks do not begin in their order.
process_of() {
  local pid
  for pid in $(ours); do
    if grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}
# shellcheck disable=SC2046  # numbers of processes
finish() {
  if [[ -n $job ]]; then kill -KILL $(ours) $(pgrep -P "$job") "$job"; fi
  rm -rf "$scratch" "$tools"
} 2>/dev/null
trap finish EXIT

# train RANKS STATUS FLAG...: runs on this many ranks. A single rank is started without mpirun.
train() {
  local n=$1 expected=$2 start=("${alone[@]}") status=0
  shift 2
  [[ -n ${loaded[*]} ]] || load_program "$program" "$tools"
  ((n == 1)) || start=("${mpirun[@]}" -n "$n")
  "${start[@]}" "${loaded[@]}" train "${common[@]}" "$@" >out 2>&1 || status=$?
  [[ $status == "$expected" ]] || fail "train $*: exit status $status instead of $expected"
}
# trains RANKS FLAG...: starts a run in the background, as `job`.
trains() {
  local n=$1
  shift
  [[ -n ${loaded[*]} ]] || load_program "$program" "$tools"
  : >out    # removes the output of the previous run
  "${mpirun[@]}" -n "$n" "${loaded[@]}" train "${common[@]}" "$@" >out 2>&1 &
  job=$!
}
# ends: waits for the run in the background and sets `status`.
ends() {
  status=0
  wait "$job" || status=$?
  job=
}
# refuses TEXT FLAG...: all `ranks` (default 1) together print one line, with status 2, before the first step.
refuses() {
  local words=$1
  shift
  train "${ranks:-1}" 2 --steps 3 "$@"
  [[ $(grep -v '^shardmark: warning: ' out | grep -c '^shardmark: ') == 1 ]] || fail "$*: not one line"
  says "$words"
  if grep -q '^ *1 ' out; then fail "it trained before it refused $*"; fi
}
# Small disks need a mount namespace. A script that calls this first restarts itself in one, if that is possible.
with_own_mounts() {
  if [[ -n ${OWN_MOUNTS:-} ]]; then return; fi
  if unshare --mount mount -t tmpfs tmpfs /mnt 2>/dev/null; then
    rm -rf "$scratch" "$tools"
    cd "$home"
    OWN_MOUNTS=1 exec unshare --mount bash "$0" "$program"
  fi
  echo "left out: small disks, for the kernel or container allows no mounts of one's own"
}
