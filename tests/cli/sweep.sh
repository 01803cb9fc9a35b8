#!/usr/bin/env bash
# jobs/sweep.sh: how many ranks it takes, with which launcher's flags, and how studies are numbered, linked and resumed.
# The machine and the program are stand-ins; what is checked is the command that would start.
set -euo pipefail

home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/{bin,jobs,build,suites}
cp "$home"/jobs/sweep.sh "$dir/jobs"
cd "$dir"
touch suites/tiny.yaml
export PATH=$dir/bin:$PATH
unset OMP_NUM_THREADS SHARDMARK_ENV SLURM_NNODES SLURM_CPUS_ON_NODE

answers() { printf '#!/bin/bash\n%s\n' "$2" >"$1"; chmod +x "$1"; }
answers bin/nproc 'echo 4'
answers bin/lscpu 'echo "# comment"; for core in 0 0 1 1 2 2 3 3; do echo "$core,0"; done'
answers bin/nvidia-smi 'exit 9'
answers bin/mpirun 'if [[ $1 == --version ]]; then echo "mpirun (Open MPI) 4.1.4"; exit; fi
echo "mpirun $*"; while [[ $1 != */build/shardmark ]]; do shift; done; "$@"'
answers bin/srun 'echo "srun $*"'
# The program leaves what a run leaves: a published study, or a journal when it is killed.
answers build/shardmark 'echo "study of $2" >"$4${KILLED:+.journal}"; exit ${STATUS:-0}'

said=''
sweep() { status=0; said=$(bash jobs/sweep.sh suites/tiny.yaml "$@" 2>&1) || status=$?; }
fail() { printf 'FAILED: %s; exit status %s; it said:\n%s\n' "$1" "$status" "$said"; exit 1; }
has() { for text in "$@"; do [[ $said == *"$text"* ]] || fail "'$text' is missing"; done; }
lacks() { for text in "$@"; do [[ $said != *"$text"* ]] || fail "'$text' should not be there"; done; }
ends() { [[ $status == "$1" ]] || fail "exit status $1 expected"; }
link_is() { [[ $(readlink results/tiny.h5) == "$1" ]] || fail "results/tiny.h5 should link $1"; }

sweep -n 2
ends 0; has "2 rank(s) on 1 node(s) (CPU, 1 thread" "-n 2 $dir/build/shardmark run suites/tiny.yaml -o results/tiny-0001.h5"
has "slot:PE=2"; lacks --oversubscribe; link_is tiny-0001.h5
sweep -n 5 -- --steps 3
ends 0; has "--oversubscribe" "mpi_yield_when_idle 1" "-o results/tiny-0002.h5 --steps 3"; link_is tiny-0002.h5
if [[ $(id -u) == 0 ]]; then has --allow-run-as-root; else lacks --allow-run-as-root; fi

answers bin/nproc 'echo 2'    # two of the four cores are ours
sweep -n 2
ends 0; has "--bind-to none"; lacks slot:PE mpi_yield_when_idle\ 1
sweep -n 3
ends 0; has "mpi_yield_when_idle 1"
answers bin/nproc 'echo 4'

answers bin/nvidia-smi 'printf "GPU 0: H200 (UUID: a)\nGPU 1: H200 (UUID: b)\n"'
sweep
ends 0; has "2 rank(s) on 1 node(s) (GPU" "-n 2 "
answers bin/nvidia-smi 'exit 9'

# A killed run keeps its journal, its number and the old link, and says how to go on.
before=$(readlink results/tiny.h5)
KILLED=1 STATUS=137 sweep -n 2
ends 137; has "to go on: jobs/sweep.sh suites/tiny.yaml -n 2 -o results/tiny-0006.h5 --resume"; link_is "$before"
sweep -n 2 --resume
ends 0; has "-o results/tiny-0006.h5 --resume"; link_is tiny-0006.h5
STATUS=1 sweep -n 2    # some points were wrong: still a study
ends 1; link_is tiny-0007.h5
sweep -n 2 -o results/own.h5
ends 0; has "-o results/own.h5"; link_is tiny-0007.h5

# jobs/env.sh and Slurm.
echo 'LAUNCHER=srun RANKS_PER_NODE=2 SRUN_FLAGS=(--gpu-bind=none)' >jobs/env.sh
SLURM_NNODES=3 sweep
ends 0; has "6 rank(s) on 3 node(s)" "srun --mpi=pmix --nodes=3 --ntasks=6 --ntasks-per-node=2"
has "--kill-on-bad-exit=1" "--gpu-bind=none"
echo 'RANKS_PER_NODE=4 MPIRUN_FLAGS=(--hostfile hosts)' >jobs/env.sh
sweep -n 8
ends 0; has "--hostfile hosts -n 8"; lacks "mpi_yield_when_idle 1"
echo 'LAUNCHER=torchrun' >jobs/env.sh
sweep
ends 2; has "LAUNCHER='torchrun'" "accepted: mpirun, srun"
rm jobs/env.sh

# One clear line each.
sweep -n none; ends 2; has "not 'none'"
sweep --steps 3; ends 2; has "unknown flag '--steps'" "after --"
sweep suites/other.yaml; ends 2; has "two suites"
SHARDMARK_ENV=/nowhere sweep; ends 2; has "/nowhere"
rm suites/tiny.yaml
sweep; ends 2; has "cannot read the suite"
touch suites/tiny.yaml; rm build/shardmark
sweep; ends 2; has "make build"
echo "jobs/sweep.sh: ok"
