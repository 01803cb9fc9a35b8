#!/usr/bin/env bash
# NEEDS torch
# Tests `shardmark submit` and jobs/sweep.sbatch with a real Slurm. The nodes are namespaces of this machine, each with
# its own network, host name, processes and shared memory, connected by a bridge. There are two nodes; with SOAK=1 there
# are four, and a job that really reaches its time limit. Needs root and `jobs/bootstrap.sh --cluster`; otherwise it is
# skipped (77).
set -euo pipefail

program=$(realpath "${1:?usage: tests/cluster/slurm.sh path/to/shardmark}")
# shellcheck source=tests/cluster/nodes.bash
source "$(dirname "$0")/nodes.bash"
for name in slurmctld slurmd munged; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done
count=2
if [[ -n ${SOAK:-} ]]; then count=4; fi

# --- several nodes on one machine -----------------------------------------------------------------------------------

start_munge() {
  mkdir -m 700 "$dir/munge"
  head -c 128 /dev/urandom >"$dir/munge/key"
  chmod 400 "$dir/munge/key"
  chmod 711 "$dir" "$dir/munge"
  munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --seed-file="$dir/munge/seed" --log-file="$dir/munge.log" 2>/dev/null &
  pids+=($!)
  wait_for 30 munged test -S "$dir/munge/socket"
}

start_slurm() {
  mkdir "$dir/state"
  sed -e "s|DIR|$dir|; s|NET|$net|g; s|NODES|$count|g; s|=CPUS|=$(nproc)|" "$home/tests/cluster/slurm.conf.in" \
    >"$dir/slurm.conf"
  export SLURM_CONF=$dir/slurm.conf
  unshare --uts --fork --kill-child sh -c "hostname controller; exec slurmctld -D -f $SLURM_CONF" >/dev/null 2>&1 &
  pids+=($!)
  for node in "${nodes[@]}"; do
    mkdir "$dir/spool-node$node" "$dir/tmp-node$node"
    start_node "$node" slurmd -D -N "node$node" -f "$SLURM_CONF"
  done
  wait_for 60 "$count idle nodes" sh -c "[ \$(sinfo -h -N -t idle -o %N | grep -c node) = $count ]"
}

make_network $count
start_munge
start_slurm
[[ $(srun -N $count hostname | sort | xargs) == "$(seq -f node%g -s ' ' $count)" ]] || fail "srun does not reach all nodes"
echo "a Slurm of $count nodes is up after $SECONDS s"

# --- a small copy of the repository, with a study of its own ---------------------------------------------------------

mkdir -p "$dir/work/build" "$dir/work/results" "$dir/work/suites"
cd "$dir/work"
ln -s "$home/jobs" jobs
ln -s "$program" build/shardmark
# Four training points for each batch size (two strategies on one rank and on all ranks), and four collectives.
write_suite() {
  cat >suites/tiny.yaml <<TEXT
name: tiny
ranks: [1, $1]
sampling: {warmup_steps: 1}
training:
  - model: mlp
    strategy: [ddp, fsdp]
    batch_size: [2, 4, 8]
collectives:
  - operation: [all_reduce, broadcast]
    ranks: $1
    bytes: [1KiB, 1MiB]
TEXT
}
# Open MPI must be told which network connects the nodes. Real clusters do this in the same file.
export SHARDMARK_ENV=$dir/env.sh

use_launcher() {
  cat >"$SHARDMARK_ENV" <<TEXT
LAUNCHER=$1
RANKS_PER_NODE=1
MPIRUN_FLAGS=(--mca oob_tcp_if_include e0)
export OMPI_MCA_btl_tcp_if_include=e0 OMPI_MCA_mpi_yield_when_idle=1    # the nodes share the machine's cores
TEXT
}

# The following functions print the job's id. submit NODES [FLAGS OF submit...] -- FLAGS OF run...
submit() { build/shardmark submit --env "$SHARDMARK_ENV" --nodes "$@" | sed -n 's/^Submitted batch job //p'; }
# Submits jobs/sweep.sbatch: submit_script NODES -- FLAGS OF run...
submit_script() { sbatch --parsable --nodes "$1" jobs/sweep.sbatch suites/tiny.yaml "${@:2}"; }
# resume JOB NODES -- FLAGS OF run...: submits a job that resumes the study of another job.
resume() {
  sbatch --parsable --nodes "$2" --exclusive --output results/slurm-%j.log \
    --wrap "jobs/sweep.sh suites/tiny.yaml -o results/tiny-job$1.h5 --resume ${*:3}"
}
# If squeue fails, the job does not count as ended.
job_ended() {
  local left
  left=$(squeue -h -j "$1" 2>/dev/null) && [[ -z $left ]]
}
records() { grep -c '"record":' "results/tiny-job$1.h5.journal" || true; }
points_kept() { [[ $(records "$1") -ge $2 ]]; }

# check_study JOB NODES POINTS: the study of the job has every point once, all of them are good, and it names all nodes.
check_study() {
  [[ -e results/tiny-job$1.h5 ]] || fail "job $1 left no study: $(tail -n 3 "results/slurm-$1.log")"
  "$python" "$home/tests/cluster/check_study.py" "results/tiny-job$1.h5" "$3" --nodes "$2" ||
    fail "the study of job $1 is wrong"
}
# The same, after the job has ended.
check_job() {
  wait_for 600 "job $1 to end" job_ended "$1"
  wait_for 30 "the processes of job $1 to end" none_marked "SLURM_JOB_ID=$1"
  check_study "$@"
}

for ranks in $(seq 2 2 $count); do
  write_suite "$ranks"
  use_launcher srun
  check_job "$(submit "$ranks" suites/tiny.yaml -- --batch-size 4 --steps 3)" "$ranks" 8
  echo "srun: a sweep on $ranks nodes, after $SECONDS s"
  use_launcher mpirun
  check_job "$(submit_script "$ranks" -- --batch-size 4 --steps 3)" "$ranks" 8
  echo "mpirun: a sweep on $ranks nodes, after $SECONDS s"
done

# Slurm's signal before the time limit arrives during a sweep: the job requeues itself and continues.
requeues() { grep -c 'out of time after .* requeued' "results/slurm-$1.log"; }
job=$(submit $count suites/tiny.yaml -- --steps 300)
wait_for 240 "two finished points" points_kept "$job" 2
scancel --batch --signal=USR1 "$job"
check_job "$job" $count 16
[[ $(requeues "$job") == 1 ]] || fail "the job was not requeued by itself: $(cat "results/slurm-$job.log")"
echo "out of time in the middle: every point measured once, after $SECONDS s"

# The same in a job array: the other task, which has finished by then, does not run again.
mkdir suites/short
sed 's/batch_size: .*/batch_size: 4/' suites/tiny.yaml >suites/short/tiny.yaml
array=$(submit $count suites/short/tiny.yaml suites/tiny.yaml -- --steps 300)
wait_for 240 "two finished points" points_kept "${array}_1" 2
scancel --batch --signal=USR1 "${array}_1"
wait_for 600 "job $array to end" job_ended "$array"
check_study "${array}_0" $count 8
check_study "${array}_1" $count 16
[[ $(requeues "${array}_1") == 1 ]] || fail "the task was not requeued: $(cat "results/slurm-${array}_1.log")"
[[ $(grep -c ', resuming' "results/slurm-${array}_0.log") == 1 ]] || fail "the array was requeued: $(cat "results/slurm-${array}_0.log")"
echo "one task of an array out of time: it alone was requeued, after $SECONDS s"

# scancel during a sweep: finished points are kept, and a new job resumes the study.
job=$(submit $count suites/tiny.yaml -- --steps 300)
wait_for 240 "two finished points" points_kept "$job" 2
kept=$(records "$job")
scancel "$job"
wait_for 120 "the cancelled job to end" job_ended "$job"
wait_for 30 "the processes of the cancelled job to end" none_marked "SLURM_JOB_ID=$job"
[[ ! -e results/tiny-job$job.h5 ]] || fail "the job was over before it was cancelled"
points_kept "$job" "$kept" || fail "scancel lost records: $(records "$job") of $kept"
next=$(resume "$job" $count -- --steps 300)
wait_for 600 "job $next to end" job_ended "$next"
check_study "$job" $count 16
echo "scancel with $kept finished points: all kept, 16 after a new submission, after $SECONDS s"
[[ -n ${SOAK:-} ]] || exit 0

# A job reaches its time limit. Slurm checks every 30 s for jobs that are near theirs, and looks 30 s ahead. So a signal
# for two minutes before the end of four arrives 90 to 120 s after the start. 16 points of 9 s take longer than that.
job=$(submit $count --time 4m suites/tiny.yaml -- --steps 100000 --set sampling.time_limit=9)
check_job "$job" $count 16
[[ $(requeues "$job") -ge 1 ]] || fail "the job never reached its time limit: $(cat "results/slurm-$job.log")"
echo "a limit of four minutes, reached $(requeues "$job") times: every point measured once, after $SECONDS s"
