#!/usr/bin/env bash
# Runs a suite: picks the ranks and the launcher's flags for this machine (or Slurm allocation) and the study's name.
# The one place that knows how shardmark is started; what only you can know of a machine stands in jobs/env.sh.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: jobs/sweep.sh SUITE.yaml [-n RANKS] [-o STUDY.h5] [--resume] [-- FLAGS OF `shardmark run`]

  -n RANKS     default: one rank per GPU; without GPUs one per core, as far as memory goes
  -o STUDY.h5  default: results/<suite>-0001.h5, -0002 ..., and results/<suite>.h5 links the newest
  --resume     go on with STUDY.h5; without -o with the newest study of this suite

  jobs/sweep.sh suites/strategies.yaml -n 4 -- --strategies ddp fsdp --steps 20

OMP_NUM_THREADS is 1 unless set (on GPUs: an equal share of the cores). Hosts, modules, launcher and network interfaces
belong into jobs/env.sh (see jobs/env.sh.example), or into the file that SHARDMARK_ENV names.
TEXT
}

say() { echo "sweep: $*" >&2; }
fail() { echo "sweep: $*" >&2; exit 2; }

suite='' ranks='' study='' resume=no
while [[ $# -gt 0 ]]; do
  case $1 in
    -n | -o) [[ $# -ge 2 ]] || fail "$1 needs a value (see jobs/sweep.sh --help)" ;;&
    -n) ranks=$2; shift ;;
    -o) study=$2; shift ;;
    --resume) resume=yes ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -*) fail "unknown flag '$1'; flags of \`shardmark run\` follow after -- (see jobs/sweep.sh --help)" ;;
    *) [[ -z $suite ]] || fail "two suites: '$suite' and '$1'; one sweep runs one suite"; suite=$1 ;;
  esac
  shift
done
[[ -n $suite ]] || { usage >&2; fail "no suite given"; }
[[ -r $suite ]] || fail "cannot read the suite '$suite'; there are: $(echo suites/*.yaml)"
[[ -z $ranks || $ranks =~ ^[1-9][0-9]*$ ]] || fail "-n takes a number of ranks from 1 up, not '$ranks'"

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$home/build/shardmark

# --- the machine ----------------------------------------------------------------------------------------------------

LAUNCHER=mpirun RANKS_PER_NODE='' MPIRUN_FLAGS=() SRUN_FLAGS=()
env_file=${SHARDMARK_ENV:-$home/jobs/env.sh}
if [[ -e $env_file ]]; then
  set +u    # module systems use unset variables
  # shellcheck source=/dev/null
  source "$env_file"
  set -u
elif [[ -n ${SHARDMARK_ENV:-} ]]; then
  fail "SHARDMARK_ENV names '$SHARDMARK_ENV', which does not exist"
fi
[[ -x $program ]] || fail "no $program: run make build first"

smallest() { printf '%s\n' "$@" | sort -n | head -n 1; }

gpus() { nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true; }

# Cores for us on this node: physical ones, inside the affinity mask, the container's quota, Slurm's allocation.
cores() {
  local quota=max period=1 allowed
  allowed=$(nproc)
  if [[ -r /sys/fs/cgroup/cpu.max ]]; then read -r quota period </sys/fs/cgroup/cpu.max; fi
  if [[ $quota == max ]]; then quota=$allowed; else quota=$((quota / period)); fi
  quota=$(smallest "$allowed" "$num_physical" "$quota" "${SLURM_CPUS_ON_NODE:-$allowed}")
  echo $((quota > 0 ? quota : 1))
}

# Ranks that the memory holds, at 1.5 GB for LibTorch and a small model.
memory_ranks() {
  local free_kb limit=max
  free_kb=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
  if [[ -r /sys/fs/cgroup/memory.max ]]; then limit=$(</sys/fs/cgroup/memory.max); fi
  if [[ $limit != max ]]; then free_kb=$(smallest "$free_kb" $((limit / 1024))); fi
  echo $((free_kb > 1500000 ? free_kb / 1500000 : 1))
}

nodes=${SLURM_NNODES:-1}
num_gpus=$(gpus)
num_physical=$(lscpu -p=core,socket 2>/dev/null | grep -v '^#' | sort -u | wc -l || true)
if [[ $num_physical == 0 ]]; then num_physical=$(nproc); fi
num_cores=$(cores)
if [[ -z $RANKS_PER_NODE ]]; then
  if [[ $num_gpus -gt 0 ]]; then RANKS_PER_NODE=$num_gpus; else RANKS_PER_NODE=$(smallest "$num_cores" "$(memory_ranks)"); fi
fi
ranks=${ranks:-$((RANKS_PER_NODE * nodes))}
if [[ " ${MPIRUN_FLAGS[*]} " == *" --host"* ]]; then    # other hosts by name: as full as one node would be
  on_node=$(smallest "$ranks" "$RANKS_PER_NODE")
else
  on_node=$(((ranks + nodes - 1) / nodes))
fi
share=$((num_cores / on_node > 0 ? num_cores / on_node : 1))    # cores for each rank
if [[ $num_gpus -gt 0 ]]; then threads=$share; else threads=1; fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$threads}

# --- the launcher ---------------------------------------------------------------------------------------------------

launch_with_mpirun() {
  command -v mpirun >/dev/null || fail "no mpirun: run jobs/bootstrap.sh, or load an MPI module in jobs/env.sh"
  launcher=(mpirun)
  if mpirun --version | grep -q 'Open MPI'; then
    launcher+=(--quiet)    # shardmark says itself, in one line, why it ends
    if [[ $(id -u) == 0 ]]; then launcher+=(--allow-run-as-root); fi
    if [[ $nodes -gt 1 ]]; then launcher+=(--map-by "ppr:$on_node:node" --oversubscribe -x OMP_NUM_THREADS); fi
    if [[ $on_node -gt $num_cores ]]; then
      launcher+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
    elif [[ $nodes -gt 1 ]]; then
      launcher+=(--bind-to none --mca mpi_yield_when_idle "${OMPI_MCA_mpi_yield_when_idle:-0}")
    elif [[ $num_cores == "$num_physical" ]]; then    # the whole machine is ours: each rank gets cores of its own
      launcher+=(--map-by "slot:PE=$share" --bind-to core)
    else    # a part of it: which cores are ours is the scheduler's business
      launcher+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 0)
    fi
  fi
  launcher+=("${MPIRUN_FLAGS[@]}" -n "$ranks")
}

# One rank per task; when one task fails Slurm ends the others too, instead of leaving them waiting.
launch_with_srun() {
  command -v srun >/dev/null || fail "LAUNCHER=srun, but there is no srun here: use LAUNCHER=mpirun outside Slurm"
  launcher=(srun --mpi=pmix --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node="$on_node"
            --cpus-per-task="$share" --distribution=block --kill-on-bad-exit=1)
  if [[ $on_node -gt $num_cores ]]; then launcher+=(--overcommit); fi
  launcher+=("${SRUN_FLAGS[@]}")
}

case $LAUNCHER in
  mpirun) launch_with_mpirun ;;
  srun) launch_with_srun ;;
  *) fail "LAUNCHER='$LAUNCHER' in $env_file; accepted: mpirun, srun" ;;
esac

# --- the study ------------------------------------------------------------------------------------------------------

name=$(basename "${suite%.*}")
link=''
number_study() {
  local last=0 file
  mkdir -p results
  for file in results/"$name"-[0-9][0-9][0-9][0-9].h5*; do
    if [[ $file =~ -([0-9]{4})\.h5(\.journal)?$ ]] && ((10#${BASH_REMATCH[1]} > last)); then
      last=$((10#${BASH_REMATCH[1]}))
    fi
  done
  if [[ $resume == yes && $last == 0 ]]; then fail "nothing to resume: no study of $name in results/"; fi
  if [[ $resume == no ]]; then last=$((last + 1)); fi
  printf -v study 'results/%s-%04d.h5' "$name" "$last"
  link=results/$name.h5
}
if [[ -z $study ]]; then number_study; fi
command_line=("$program" run "$suite" -o "$study")
if [[ $resume == yes ]]; then command_line+=(--resume); fi

device=$([[ $num_gpus -gt 0 ]] && echo "GPU" || echo "CPU, $OMP_NUM_THREADS thread(s) a rank")
say "$ranks rank(s) on $nodes node(s) ($device): $suite -> $study$([[ $resume == no ]] || echo ', resuming')"
status=0
"${launcher[@]}" "${command_line[@]}" "$@" || status=$?

if [[ -n $link && -e $study ]]; then ln -sfn "$(basename "$study")" "$link"; fi
if [[ -e $study.journal ]]; then
  say "what was measured is kept; to go on: jobs/sweep.sh $suite -n $ranks -o $study --resume"
fi
exit "$status"
