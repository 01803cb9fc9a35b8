#!/usr/bin/env bash
# NEEDS torch
# shardmark launch and submit, and jobs/sweep.sh, which calls launch: the command that is started, how studies are
# numbered, linked and resumed, and that a sweep continues after ranks die during a point. mpirun and sbatch are
# stand-ins where only the command matters.
set -euo pipefail

# shellcheck source=tests/own_memory.bash
source "$(dirname "$0")/../own_memory.bash"
# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
trap 'rm -rf "$dir"; leave_own_memory' EXIT
mkdir jobs build
cp "$home"/jobs/sweep.sh jobs
ln -s "$program" build/shardmark

cat >suites/tiny.yaml <<'Y'
name: tiny
ranks: [1, 2]
sampling: {warmup_steps: 1, min_steps: 1000, max_steps: 1000}
training:
  - model: {mlp: {features: 8, width: 16, layers: 2}}
    strategy: [single, ddp, fsdp]
    batch_size: [2, 4]
Y

link_is() { [[ $(readlink results/tiny.h5) == "$1" ]] || fail "results/tiny.h5 should link $1"; }

# --- the command ------------------------------------------------------------------------------------------------------
# The stand-in leaves the same files as a run: a published study, or nothing if it is told to fail.
answers mpirun 'if [[ $1 == --version ]]; then echo "mpirun (Open MPI) 4.1.4"; exit; fi
if [[ -n ${KILL:-} ]]; then kill -9 $$; fi
echo "mpirun $*"; while [[ $1 != -o ]]; do shift; done; [[ -n ${STATUS:-} ]] || echo study >"$2"
if [[ -n ${STAYS:-} ]]; then touch "$2.journal"; sleep 1; cp "$STAYS" "$2.new"; mv "$2.new" "$2"; rm "$2.journal"; sleep ${AFTER:-300}; fi; exit ${STATUS:-0}'
answers srun 'echo "srun $*"'
answers nvidia-smi 'exit 9'
sweep() { PATH=$dir/bin:$PATH runs jobs/sweep.sh suites/tiny.yaml "$@"; }

sweep -n 1 --print; ends 0; [[ ! -e results ]] || fail "--print made results/"
sweep -n 1
ends 0; has "1 rank on 1 node" "-n 1 $program run suites/tiny.yaml -o results/tiny-0001.h5"; link_is tiny-0001.h5
sweep -n 500 -- --steps 3
ends 0; has "--oversubscribe" "mpi_yield_when_idle 1" "--bind-to none" "-o results/tiny-0002.h5 --steps 3"; link_is tiny-0002.h5
STATUS=1 sweep -n 1; ends 3    # the status of the launcher itself; ours would mean that something was measured
STATUS=2 sweep -n 1; ends 2; link_is tiny-0002.h5
sweep -n 1 --resume; ends 0; has "-o results/tiny-0002.h5 --resume" "resuming"
sweep -n 2 --print -- --steps 3; ends 0; has "OMP_NUM_THREADS=1 mpirun" "-n 2" "tiny-0003.h5 --steps 3"; lacks "ranks on" "'"
sweep -n 1 -o results/own.h5; ends 0; has "-o results/own.h5"; link_is tiny-0002.h5
STATUS=255 sweep -n 1 -o results/none.h5
ends 3; has "exit status 255; no point was running, so it is not tried again"
STATUS=3 sweep -n 1 -o results/none.h5
ends 3; has "no point was running, so it is not tried again"
KILL=1 sweep -n 1 -o results/none.h5
ends 137; has "so it is started once more" "so it is not tried again"
STAYS=$home/tests/data/studies/shaped.h5 sweep -n 1 -o results/stays.h5    # a rank is stopped after the last point, so mpirun never ends
ends 0; has "the study is complete, but its job did not end; ended it"
for dead in 1 5 137 139; do    # mpirun lost a node, the watchdog reported a rank, or a rank died after everything was done
  STAYS=$home/tests/data/studies/shaped.h5 AFTER=0 STATUS=$dead sweep -n 1 -o results/died-$dead.h5
  ends 0; has "the study is complete; its job then failed"
done
STATUS=1 sweep -n 1 -o results/died-5.h5 --resume    # complete, but not by this job, which did not start
ends 3; has "no point was running, so it is not tried again"
if PATH=$dir/bin:$PATH jobs/sweep.sh suites/tiny.yaml -n 1 -o results/full.h5 2>/dev/full; then :; else fail "a full disk for messages ended the sweep"; fi
answers nvidia-smi 'printf "GPU 0: H200 (UUID: a)\nGPU 1: H200 (UUID: b)\n"'
unset CUDA_VISIBLE_DEVICES
sweep; ends 0; has "2 ranks on 1 node" "-n 2 "
CUDA_VISIBLE_DEVICES=1 sweep --print; ends 0; has "-n 1"
CUDA_VISIBLE_DEVICES=1,7,0 sweep --print; ends 0; has "-n 1"    # there is no GPU 7, and CUDA stops parsing there
CUDA_VISIBLE_DEVICES=0,1 sweep --print; ends 0; has "-n 2"
answers nvidia-smi 'exit 9'
echo "LAUNCHER=srun RANKS_PER_NODE=2 SRUN_FLAGS=(--gpu-bind=none '--x=a b') CONTAINER=(apptainer exec x.sif)" >jobs/env.sh
SLURM_JOB_ID=7 SLURM_NNODES=3 sweep
ends 0; has "6 ranks on 3 nodes" "srun --mpi=pmix --nodes=3 --ntasks=6" "--gpu-bind=none --x=a b apptainer exec x.sif shardmark run"
LAUNCHER=mpirun sweep; ends 0; has "mpirun"
SLURM_JOB_ID=7 SLURM_NNODES=3 SLURM_HET_SIZE=2 SLURM_JOB_NUM_NODES_HET_GROUP_0=3 SLURM_JOB_NUM_NODES_HET_GROUP_1=4 sweep
ends 2; has "2 heterogeneous groups with 7 nodes in all (SLURM_HET_SIZE), and launch starts ranks on the first group alone"
SLURM_JOB_ID=7 SLURM_HET_SIZE=1 sweep; ends 0
rm jobs/env.sh

# Each mistake gives one clear line.
sweep -n none; ends 2; has "none"
OMP_PLACES=cores sweep -n 2 --print; ends 0; has "OMP_PROC_BIND=false"
# If flags of run come before --, the error shows what to type. It keeps the order of the words.
sweep --steps 3; ends 2; has "--steps belongs to run: shardmark launch" "suites/tiny.yaml -- --steps 3"
says_launch() { local words=$1; shift; runs "$program" launch tiny "$@"; ends 2; has "$words"; }
for flag in $(PATH=$PATH "$program" run --help-all | grep -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
  case $flag in --help | --help-all | --output | --resume | --rerun-failed | --ranks | --repetition) continue ;; esac    # launch has them, too, or gives them
  says_launch "$flag belongs to run: shardmark launch tiny -- $flag" "$flag"
done
says_launch "--strategy, --quiet belong to run: shardmark launch tiny -n 2 -- --strategy 'fsdp(shard=full)' --quiet --set seed=3" \
  --strategy 'fsdp(shard=full)' -n 2 --quiet -- --set seed=3
says_launch "--steps belongs to run: shardmark launch tiny -- --steps=3" --steps=3
says_launch "--strategy belongs to run: shardmark launch tiny -n 2 -- --strategy ddp fsdp" --strategy ddp fsdp -n 2
says_launch "were not expected: --frob --grab (see shardmark launch --help)" --frob --grab
runs "$program" submit suites/tiny.yaml --threads 2; ends 2; has "--threads belongs to run: shardmark submit suites/tiny.yaml -- --threads 2"
runs "$program" launch tiny -n 2 -n 4; ends 2; has "takes one value: give it once"
sweep suites/other.yaml; ends 2; has "one suite, not 2"
LAUNCHER=torchrun sweep; ends 2; has "mpirun, srun"
SHARDMARK_ENV=/nowhere sweep; ends 2; has "/nowhere"
PATH=$dir/bin runs "$program" launch nowhere.yaml; ends 2; has "nowhere.yaml: no such suite"
sweep -- --frob 3; ends 2; has "after --: not flags of run: --frob 3 (see shardmark run --help)"; lacks "ranks on"
sweep -- --steps 3 -n 2; ends 2; has "after --: -n goes before --"
sweep -- --resume; ends 2; has "--resume goes before --"
# Other commands get ranks in the same way, with their own arguments behind them and without --.
answers mpirun 'if [[ $1 == --version ]]; then echo "mpirun (Open MPI) 4.1.4"; exit; fi; echo "mpirun $* ($OMP_NUM_THREADS)"; exit ${STATUS:-0}'
PATH=$dir/bin:$PATH runs "$program" launch -n 2 collective all_reduce -b 8 --ranks-none; ends 0; has "-n 2 $program collective all_reduce -b 8 --ranks-none (1)"
PATH=$dir/bin:$PATH runs "$program" launch --print train --model mlp -n 3; ends 0; has "OMP_NUM_THREADS=1 mpirun" "$program train --model mlp -n 3"; lacks "mpirun mpirun"
STATUS=1 PATH=$dir/bin:$PATH runs "$program" launch -n 4 doctor; ends 1; has "-n 4 $program doctor (1)"
PATH=$dir/bin:$PATH runs "$program" launch --report train --model mlp; ends 2; has "leave out --report"
PATH=$dir/bin:$PATH runs "$program" launch -n 4 --report train; ends 2; has "launch train measures no suite: leave out --report"
PATH=$dir/bin:$PATH runs "$program" launch -n 2 -o x.h5 train; ends 2; has "leave out --output, or give it after train"
rm bin/mpirun; PATH=$dir/bin runs "$program" launch suites/tiny.yaml; ends 2; has "mpirun cannot be started"

# --- submit -----------------------------------------------------------------------------------------------------------
runs "$program" submit --nodes 4 --gpus-per-node 8 suites/tiny.yaml --print -- --steps 3
ends 0; has "#SBATCH --nodes=4" "#SBATCH --gpus-per-node=8" "#SBATCH --signal=B:USR1@120" "At most, by the plan" "-- '--steps' '3'"
bash -n <<<"$said" || fail "not a shell script"
runs "$program" submit suites/tiny.yaml --time 90m --print; ends 0; has "#SBATCH --time=0-01:30:00" "As requested"
runs "$program" submit suites/tiny.yaml --time 1-02 --print; ends 0; has "#SBATCH --time=1-02:00:00"
for time in soon -1:00:00 inf 1e9h 25:61:61; do runs "$program" submit suites/tiny.yaml --time=$time --print; ends 2; has "90m, 2h"; done
for time in 999999d 9999-25; do runs "$program" submit suites/tiny.yaml --time=$time --print; ends 2; has "at most 365d"; done
runs "$program" submit suites/tiny.yaml --print -- --set sampling.time_limit=1e300; ends 2; lacks "#SBATCH"
LAUNCHER=torchrun runs "$program" submit suites/tiny.yaml --print; ends 2; has "LAUNCHER=torchrun: in jobs of slurm, mpirun, srun start ranks"
runs "$program" submit suites/tiny.yaml --time 2m --print; ends 2; has "signalled 120 s before"
# The printed script is the one that is submitted: it contains the account and partition of env.sh, and the flags for
# sbatch.
printf 'export SBATCH_ACCOUNT=mine SBATCH_PARTITION=cpu\necho loaded\n[[ -n $NONE ]] && export OTHER=1\n' >jobs/env.sh
runs "$program" submit suites/tiny.yaml --print --submit-flag=--partition=gpu --submit-flag=--qos --submit-flag=long
ends 0; has "#SBATCH --account=mine" "#SBATCH --partition=gpu" "#SBATCH --qos=long"; lacks "partition=cpu" "loaded"
rm jobs/env.sh
# Lines of a variable's value are no variables.
TEXT=$'first\nSUBMIT_FLAGS=--bad' runs "$program" submit suites/tiny.yaml --print; ends 0; lacks "--bad"
IMAGE=a/b TEXT=$'first\nIMAGE=bad' runs "$program" submit --to kubernetes suites/tiny.yaml --print; lacks "bad"
runs "$program" submit suites/tiny.yaml --print -- --duration 8h; ends 0; has "#SBATCH --time=4-"
runs "$program" submit suites/tiny.yaml --print -- --frob; ends 2; has "after --" "--frob"
runs "$program" submit suites/tiny.yaml --env none.sh --print; ends 2; has "none.sh: no such file"
LAUNCHER=srun runs "$program" submit suites/tiny.yaml --ranks-per-node 3 -o results/own.h5 --print
ends 0; has "LAUNCHER='srun'" "RANKS_PER_NODE=3" "-o 'results/own.h5'"
runs "$program" submit suites/none.yaml; ends 2; has "none.yaml"
runs "$program" submit suites/tiny.yaml --rerun-failed --print; ends 2; has "-o"
runs "$program" submit suites/tiny.yaml --rerun-failed -o results/own.h5 --print; ends 0; has "rerun_failed=--rerun-failed"
answers sbatch 'echo "account $SBATCH_ACCOUNT"; cat "$1"'
printf 'export SBATCH_ACCOUNT=mine\n[[ -n $NONE ]] && export OTHER=1\n' >jobs/env.sh    # the last command is a test that fails
PATH=$dir/bin:$PATH runs "$program" submit suites/tiny.yaml suites/tiny.yaml; ends 0; has "account mine" "#SBATCH --array=0-1"
echo 'export SBATCH_ACCOUNT=here' >here.sh; echo 'export SBATCH_ACCOUNT=wrong' >bin/here.sh
PATH=$dir/bin:$PATH runs "$program" submit --env here.sh suites/tiny.yaml; ends 0; has "account here" "env_file='$dir/here.sh'"
answers sbatch 'echo "given $*"'
PATH=$dir/bin:$PATH runs "$program" submit suites/tiny.yaml --time 2h --submit-flag=--partition=gpu
ends 0; has "given --time=0-02:00:00 --partition=gpu results/submit-0003.sbatch"
[[ -s results/submit-0001.sbatch ]] || fail "the script is not kept"
# Other batch systems. tests/cluster/schedulers.sh runs their jobs.
answers qsub 'echo "qsub $*"'
PATH=$dir/bin:$PATH runs "$program" submit --to pbs --nodes 2 --ranks-per-node 4 suites/tiny.yaml suites/tiny.yaml --submit-flag=-q --submit-flag=gpu
ends 0; has "qsub -q gpu results/submit-0001.pbs" "qsub -q gpu results/submit-0002.pbs"    # no array: a job each
grep -q '^#PBS -q gpu$' results/submit-0001.pbs || fail "the job does not hold its flags: $(cat results/submit-0001.pbs)"
runs "$program" submit --to pbs suites/tiny.yaml --print; ends 2; has "give --ranks-per-node, or --gpus-per-node"
runs "$program" submit --to pbs --ranks-per-node 1 --launcher srun suites/tiny.yaml --print; ends 2; has "--launcher srun: in jobs of pbs, mpirun starts ranks"
LAUNCHER=mpirun runs "$program" submit --to flux suites/tiny.yaml --print; ends 2; has "LAUNCHER=mpirun: in jobs of flux, flux starts ranks"
runs "$program" submit --to flux suites/tiny.yaml suites/tiny.yaml --print; ends 2; has "give one of them"
runs "$program" submit --to flux suites/tiny.yaml --print -- --set sampling.time_limit=1e300; ends 2; lacks "#flux"
runs "$program" submit --to kubernetes --ranks-per-node 1 suites/tiny.yaml --print; ends 2; has "set IMAGE in jobs/env.sh"
runs "$program" submit --to lsf suites/tiny.yaml; ends 2; has "slurm, pbs, flux, kubernetes"
PATH=$dir/bin:$PATH runs "$program" launch suites/tiny.yaml --launcher flux; ends 2; has "is this shell in a job of Flux?"
rm jobs/env.sh bin/sbatch

# One task of a job array is requeued instead of the whole array. If nothing was begun, the output does not say that
# results were kept.
answers scontrol 'echo "scontrol $*" >>requeued'
answers timeout 'shift; exec "$@"'
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; exit; fi
while [[ $1 != -o ]]; do shift; done; cp "$STUDY" "$2.journal"; : >"$2.samples"; kill -USR1 $PPID; sleep 60'
STUDY=$home/tests/data/studies/small.h5.journal SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 SLURM_CPUS_ON_NODE=2 \
  PATH=$dir/bin:$PATH "$program" launch suites/tiny.yaml -n 1 -o results/array.h5 --requeue >out 2>&1 &
launched=$!
wait_for 300 "the job's own requeue" test -s requeued
kill -KILL $launched || fail "the job ended: $(cat out)"
wait $launched || true
[[ $(cat requeued) == "scontrol requeue 7_1" ]] || fail "not the task alone was requeued: $(cat requeued out)"
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; exit; fi; kill -TERM $PPID; sleep 60'
PATH=$dir/bin:$PATH runs "$program" launch suites/tiny.yaml -n 1 -o results/nothing.h5; ends 143; has "nothing was measured yet"
# nohup still works.
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; exit; fi; kill -HUP $PPID; sleep 1; exit 3'
PATH=$dir/bin:$PATH runs nohup "$program" launch suites/tiny.yaml -n 1 -o results/nothing.h5; ends 3
rm bin/timeout bin/scontrol

# --- deaths -----------------------------------------------------------------------------------------------------------
# outcomes STUDY: prints how many points have each outcome, with the number of attempts.
outcomes() {
  "$program" report "$1" --raw --json | python3 -c '
import collections, json, sys
points = json.load(sys.stdin)["points"]
assert len({p["id"] for p in points}) == len(points) == 12, len(points)
print(sorted(collections.Counter((p["outcome"], p["attempts"], p["ended_job"]) for p in points).items()))'
}
launch() { timeout 300 "$program" launch suites/tiny.yaml -n 2 --launcher-flag=--oversubscribe "$@"; }

# If a rank is killed during a point, that point is measured again in a second attempt.
launch -o "$dir/killed.h5" >out 2>&1 &
launched=$!
began() { [[ $(wc -l <killed.h5.journal) -gt 3 && $(tail -n 1 killed.h5.journal) == *'"began"'* ]]; } 2>/dev/null
PAUSE=0.01 wait_for 300 "a point that has begun" began
for pid in $(pgrep -f "^$program run suites/tiny.yaml -o $dir/killed.h5"); do
  if grep -qz '^OMPI_COMM_WORLD_RANK=0$' "/proc/$pid/environ"; then victim=$pid; fi
done
for ((i = 0; i < 1000; ++i)); do    # rank 0 writes the journal, so it stays in this point while it is stopped
  kill -STOP "$victim"
  until grep -q '^State:.T' "/proc/$victim/status"; do sleep 0.01; done
  if began; then break; fi
  kill -CONT "$victim"; sleep 0.02
done
cp killed.h5.journal busy.h5.journal
cp killed.h5.samples busy.h5.samples
"$program" report busy.h5 | tr '\n' ' ' >screen    # during a sweep of 12 points
[[ $(cat screen) =~ ^[^:]*:\ ([0-9]+)\ point.*Unfinished:\ ([0-9]+)\ point.*--resume ]] || fail "an unfinished study: $(cat screen)"
((BASH_REMATCH[1] + BASH_REMATCH[2] == 12)) || fail "not 12 points in all: $(cat screen)"
"$program" report killed.h5.journal --html screen.html >/dev/null && grep -q 'Unfinished: ' screen.html || fail "the page of an unfinished study"
kill -9 "$victim"
status=0; wait $launched || status=$?
said=$(cat out); ends 0; has "was killed by signal 9" "it is tried once more" "first attempt failed: rank"; lacks "mpirun noticed"
[[ $(outcomes killed.h5) == *"('ok', 2, False), 1)"* ]] || fail "no point in its second attempt: $(outcomes killed.h5)"
if pgrep -f "^$program run suites/tiny.yaml -o $dir/killed.h5" >/dev/null; then fail "ranks are left"; fi

# The lock of the ranks may outlive them, as on a shared file system. launch waits for it unless a signal arrives.
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; else touch busy.h5.journal; exit 137; fi'
exec 9<busy.h5.journal
flock 9    # held until descriptor 9 is closed, however late launch starts
waits() { wait_for 300 "words that it waits" grep -q 'waiting for it' out; }
PATH=$dir/bin:$PATH "$program" launch suites/tiny.yaml -n 1 -o busy.h5 --resume >out 2>&1 9<&- &
launched=$!
waits
kill -TERM $launched
status=0; wait $launched || status=$?
said=$(cat out); ends 143; has "waiting for it" "ended by signal 15"; lacks "tried once more"
: >out
PATH=$dir/bin:$PATH "$program" launch suites/tiny.yaml -n 1 -o busy.h5 --resume >out 2>&1 9<&- &
launched=$!
waits
exec 9<&-
status=0; wait $launched || status=$?
said=$(cat out); ends 137; has "waiting for it" "it is tried once more" "so it is not tried again"
exec 9<busy.h5.journal
flock 9    # a requeued job whose node was lost waits before it starts anything
: >out
SLURM_RESTART_COUNT=1 launch -o busy.h5 --resume --launcher-flag=--frob >out 2>&1 9<&- &
launched=$!
waits
exec 9<&-
wait $launched || true
said=$(cat out); has "waiting for it" "frob"

# A point that failed in both attempts is not measured again unless the user asks for it.
python3 - busy.h5.journal <<'PYTHON'
import json, sys
def seal(line):
    body, checksum = "," + json.dumps(line, separators=(",", ":"))[1:], 0xcbf29ce484222325
    for byte in body.encode():
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return '{"checksum":"%016x"%s\n' % (checksum, body)
lines = [json.loads(line) for line in open(sys.argv[1])]
with open(sys.argv[1], "w") as journal:
    for line in lines:
        del line["checksum"]
        if line.get("record", {}).get("outcome") == "failed":
            line["record"]["attempts"] = 2
        journal.write(seal(line))
PYTHON
runs timeout 300 "$program" launch suites/tiny.yaml --launcher-flag=--oversubscribe -o busy.h5 --resume    # with as many ranks as the study has
ends 1; has "2 ranks on 1 node"; has "1 failed or wrong (to measure them again: $program launch suites/tiny.yaml" " --resume --rerun-failed)"
[[ $(outcomes busy.h5) == *"('failed', 2, True), 1), (('ok', 1, False), 11)"* ]] || fail "not one failed point: $(outcomes busy.h5)"
runs launch -o busy.h5 --resume --rerun-failed
ends 0; has "1 failed point is to be measured again" "1 point measured, 11 from before; study"
[[ $(outcomes busy.h5) == "[(('ok', 1, False), 12)]" ]] || fail "not measured again: $(outcomes busy.h5)"
runs launch -o busy.h5 --rerun-failed; ends 2; has "--resume"
echo "launch: ok"
