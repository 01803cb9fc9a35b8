#!/usr/bin/env bash
# NEEDS torch
# jobs/sweep.sbatch on a real Slurm of two nodes: namespaces of this machine, each with its own network, host name,
# processes and shared memory, joined by a bridge. Needs root and `jobs/bootstrap.sh --cluster`; skipped (77) without.
set -euo pipefail

program=${1:?usage: tests/cluster/slurm.sh path/to/shardmark}
home=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cluster/nodes.bash
source "$home/tests/cluster/nodes.bash"
for name in slurmctld slurmd munged; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done

# --- two nodes on one machine ---------------------------------------------------------------------------------------

start_munge() {
  mkdir -m 700 "$dir/munge"
  head -c 128 /dev/urandom >"$dir/munge/key"
  chmod 400 "$dir/munge/key"
  chmod 711 "$dir" "$dir/munge"
  munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --seed-file="$dir/munge/seed" --log-file="$dir/munge.log" 2>/dev/null &
  pids+=($!)
  wait_for 10 munged test -S "$dir/munge/socket"
}

start_slurm() {
  mkdir "$dir/state"
  sed -e "s|DIR|$dir|; s|NET|$net|; s|=CPUS|=$(nproc)|" "$home/tests/cluster/slurm.conf.in" >"$dir/slurm.conf"
  export SLURM_CONF=$dir/slurm.conf
  unshare --uts --fork --kill-child sh -c "hostname controller; exec slurmctld -D -f $SLURM_CONF" >/dev/null 2>&1 &
  pids+=($!)
  for node in 1 2; do
    mkdir "$dir/spool-node$node" "$dir/tmp-node$node"
    start_node $node slurmd -D -N node$node -f "$SLURM_CONF"
  done
  wait_for 30 "two idle nodes" sh -c 'sinfo -h -N -t idle -o %N | grep -c node | grep -qx 2'
}

make_network 1 2
start_munge
start_slurm
srun -N 2 hostname | sort | xargs | grep -qx 'node1 node2' || fail "srun does not reach both nodes"
echo "a Slurm of two nodes is up after $SECONDS s"

# --- a small copy of the repository, with a study of its own ---------------------------------------------------------

mkdir -p "$dir/work/build" "$dir/work/results" "$dir/work/suites"
cd "$dir/work"
ln -s "$home/jobs" jobs
ln -s "$(realpath "$program")" build/shardmark
cat >suites/tiny.yaml <<'TEXT'
name: tiny
ranks: [1, 2]
sampling: {warmup_steps: 1}
training:
  - model: mlp
    strategy: [ddp, fsdp]
    batch_size: [2, 4, 8]
collectives:
  - operation: [all_reduce, broadcast]
    ranks: 2
    bytes: [1KiB, 1MiB]
TEXT
# Open MPI has to be told which network joins the nodes; so do real clusters, in the same file.
export SHARDMARK_ENV=$dir/env.sh

use_launcher() {
  cat >"$SHARDMARK_ENV" <<TEXT
LAUNCHER=$1
RANKS_PER_NODE=1
MPIRUN_FLAGS=(--mca oob_tcp_if_include e0)
export OMPI_MCA_btl_tcp_if_include=e0 OMPI_MCA_mpi_yield_when_idle=1    # both nodes have the same cores
TEXT
}

submit() { sbatch --parsable --output="$dir/job-%j.log" jobs/sweep.sbatch suites/tiny.yaml -- "$@"; }
job_ended() { [[ -z $(squeue -h -j "$1" 2>/dev/null) ]]; }
points_kept() { [[ $(wc -l <"results/tiny-job$1.h5.journal") -gt $2 ]]; }    # one line more: the environment

# check_study JOB POINTS: when the job is over, its study has every point once, all of them good, and names both nodes.
check_study() {
  wait_for 300 "job $1 to end" job_ended "$1"
  [[ -e results/tiny-job$1.h5 ]] || fail "job $1 left no study"
  "$home/.venv/bin/python" "$home/tests/cluster/check_study.py" "results/tiny-job$1.h5" "$2" ||
    fail "the study of job $1 is wrong"
}

for launcher in srun mpirun; do
  use_launcher "$launcher"
  check_study "$(submit --batch-sizes 4 --steps 3)" 8
  echo "$launcher: a sweep on two nodes, after $SECONDS s"
done

# The signal that Slurm sends before the time limit, in the middle of a sweep: the job requeues itself and goes on.
job=$(submit --steps 6)
wait_for 120 "two finished points" points_kept "$job" 2
scancel --batch --signal=USR1 "$job"
check_study "$job" 16
grep -q 'out of time, requeued' "$dir/job-$job.log" || fail "the job was not requeued by itself"
grep -q 'resuming' "$dir/job-$job.log" || fail "the requeued job did not resume"
echo "out of time in the middle: every point measured once, after $SECONDS s"
