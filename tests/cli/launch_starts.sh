#!/usr/bin/env bash
# NEEDS torch
# Tests starts of shardmark launch and submit that go wrong: many at the same time, programs that cannot be started,
# kill -9, and folders that are not writable. mpirun and sbatch are stand-ins where only what launch does with them
# matters.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
mkdir tmp
export TMPDIR=$dir/tmp

cat >suites/tiny.yaml <<'Y'
name: tiny
ranks: [1, 2]
sampling: {warmup_steps: 1, min_steps: 20000, max_steps: 20000, time_limit: 60}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: [single, ddp], batch_size: [2, 4]}
Y

standing_in() { PATH=$dir/bin:$PATH runs "$@"; }
# at_once COUNT COMMAND...: runs COUNT copies of the command at the same time. Their outputs and statuses are in said-N
# and status-N.
at_once() {
  local n count=$1 pids=()
  shift
  for ((n = 0; n < count; ++n)); do
    { local status=0; PATH=$dir/bin:$PATH "$@" >"said-$n" 2>&1 || status=$?; echo $status >"status-$n"; } &
    pids+=($!)
  done
  wait "${pids[@]}"
}

# --- many at once -----------------------------------------------------------------------------------------------------
answers nvidia-smi 'exit 9'
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; exit; fi
while [[ $1 != -o ]]; do shift; done; sleep 0.3; [[ ! -e $2 ]] || exit 2; cp "$STUDY" "$2.new"; ln "$2.new" "$2" && rm "$2.new"'
export STUDY=$home/tests/data/studies/shaped.h5
at_once 12 "$program" launch suites/tiny.yaml -n 1 --report
said=$(cat said-*)
[[ $(sort -u status-*) == 0 ]] || fail "not all of 12 launches measured: $(cat status-*)"
[[ $(grep -ho -e '-> results/tiny-[0-9]*.h5' said-* | sort -u | wc -l) == 12 ]] || fail "12 launches have not 12 studies"
for n in {0..11}; do    # each launch reports its own study
  own=$(grep -o 'tiny-[0-9]*' "said-$n" | sed -n 1p)
  [[ $(grep -o 'tiny-[0-9]*' "said-$n" | sort -u) == "$own" ]] && grep -q 'vs fastest' "said-$n" || fail "$(cat "said-$n")"
done
[[ $(ls results) == $(printf 'tiny-%04d.h5\n' {1..12}; echo tiny.h5) ]] || fail "left in results: $(ls results)"
[[ $(readlink results/tiny.h5) == tiny-0012.h5 ]] || fail "results/tiny.h5 links $(readlink results/tiny.h5)"

# Two launches write the same study, given with -o. The one that is refused has not measured it, although it is complete
# by then.
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; exit; fi
while [[ $1 != -o ]]; do shift; done
if mkdir "$2.mine" 2>/dev/null; then sleep 2; cp "$STUDY" "$2.new"; mv "$2.new" "$2"; else until [[ -e $2 ]]; do sleep 0.1; done; exit 2; fi'
at_once 2 "$program" launch suites/tiny.yaml -n 1 -o both.h5
said=$(cat said-0 said-1)
[[ $(cat status-0 status-1 | sort | xargs) == "0 2" ]] || fail "both say that they measured it: $(cat status-0 status-1)"

answers sbatch 'echo "$1"'
at_once 12 "$program" submit suites/tiny.yaml
[[ $(cat said-{0..11} | sort) == $(printf 'results/submit-%04d.sbatch\n' {1..12}) ]] || fail "12 submits: $(cat said-*)"
rm -r results

# A launch is killed before its ranks began anything. Its number is skipped, or used by --resume.
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; else kill -9 $PPID; fi'
standing_in "$program" launch suites/tiny.yaml -n 1
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; else echo "$*"; fi'
standing_in "$program" launch suites/tiny.yaml -n 1; ends 0; has "-o results/tiny-0002.h5"
standing_in "$program" launch suites/tiny.yaml -n 1 --resume; ends 0; has "-o results/tiny-0001.h5 --resume"
standing_in "$program" report results/tiny-0001.h5; ends 2; has "no such study"
rm -r results

# --- places that cannot be written ------------------------------------------------------------------------------------
ln -s nowhere results
standing_in "$program" launch suites/tiny.yaml -n 1; ends 2; has "cannot make the folder results" "-o"
standing_in "$program" submit suites/tiny.yaml; ends 2; has "results"
rm results; echo >results
standing_in "$program" launch suites/tiny.yaml -n 1; ends 2; has "cannot make the folder results" "-o"
standing_in "$program" submit suites/tiny.yaml; ends 2; has "results"
rm results

# --- programs that cannot be started ----------------------------------------------------------------------------------
# cannot_start REASON FLAGS...: launch prints the launcher's reason in one line, tries once, exits with status 2 and
# leaves no files.
cannot_start() {
  local reason=$1
  shift
  runs timeout 600 "$program" launch suites/tiny.yaml -n 2 "$@"
  ends 2; has "shardmark: the ranks cannot be started: " "$reason"; lacks "signal 6" "once more" "-----"
  [[ $(grep -c 'cannot be started' <<<"$said") == 1 && -z $(ls -A results) ]] || fail "more than one try, or something is left"
}
rm bin/nvidia-smi bin/mpirun bin/sbatch
cannot_start "no-such-program on " --container no-such-program
cannot_start "$dir/nowhere on " --container "$dir/nowhere"
printf 'text' >plain
cannot_start "$dir/plain on " --container "$dir/plain"
printf '\177ELF\2\1\1nothing' >alien; chmod +x alien
cannot_start "$dir/alien on $(hostname | cut -d. -f1): Exec format error" --container "$dir/alien"
printf '#!/nowhere/sh\n' >script; chmod +x script
cannot_start "bad interpreter" --container "$dir/script"
cannot_start "error while loading shared libraries: libmissing.so" --container sh --container=-c \
  --container='echo "x: error while loading shared libraries: libmissing.so: cannot open shared object file" >&2; exit 127'
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; else echo "mpirun: undefined flag" >&2; exit 213; fi'
standing_in "$program" launch suites/tiny.yaml -n 1; ends 3; has "undefined flag" "the job ended with exit status 213"
chmod -x bin/mpirun
PATH=$dir/bin runs "$program" launch suites/tiny.yaml -n 1; ends 2; has "mpirun cannot be started: Permission denied"
rm bin/mpirun
PATH=$dir/bin runs "$program" launch suites/tiny.yaml -n 1; ends 2; has "mpirun cannot be started: No such file"
answers srun 'echo "slurmstepd: error: execve(): /opt/x: No such file or directory" >&2
echo "srun: error: node1: task 0: Exited with exit code 2" >&2; exit 2'
standing_in "$program" launch suites/tiny.yaml -n 1 --launcher srun
ends 2; has "the ranks cannot be started: execve(): /opt/x: No such file or directory"
rm bin/srun

# --- kill -9 ----------------------------------------------------------------------------------------------------------
ranks() { pgrep -f "^$program run suites/tiny.yaml -o $dir/$1.h5" || true; }
segments() { local pid; for pid in $(ranks "$1"); do grep -so '/dev/shm/vader_segment[^ ]*' "/proc/$pid/maps" || true; done | sort -u; }
starts() {
  "$program" launch suites/tiny.yaml -n 2 -o "$dir/$1.h5" >out 2>&1 &
  launched=$!
  for ((i = 0; i < 60000; ++i)); do
    if grep -qs '"began"' "$1.h5.journal"; then break; fi
    kill -0 $launched || { said=$(cat out); fail "the launch ended"; }
    sleep 0.01
  done
  held=$(segments "$1")
  [[ -n $held ]] || fail "no segments of shared memory: $(ranks "$1")"
}
has_no_ranks() { [[ -z $(ranks "$1") ]]; }
no_ranks() { within 300 has_no_ranks "$1" || fail "ranks go on: $(ranks "$1")"; }
no_segments() { local file; for file in $held; do [[ ! -e $file ]] || return 1; done; }
gone() { within 300 no_segments || fail "left of $held"; }

starts alone    # mpirun ends together with launch, and removes its ranks and their shared memory
kill -9 $launched; wait $launched 2>/dev/null || true
no_ranks alone
no_files() { [[ -z $(find tmp -type f) ]]; }
gone; within 300 no_files || fail "session files are left: $(find tmp -type f)"

starts together
mpirun=$(pgrep -P $launched)
kill -9 $launched "$mpirun"; wait $launched 2>/dev/null || true
no_ranks together
answers mpirun 'if [[ $1 == --version ]]; then echo "Open MPI"; fi'
standing_in "$program" launch suites/tiny.yaml -n 1 -o other.h5; ends 0
gone; [[ -z $(find tmp -type f) ]] || fail "session files are left: $(find tmp -type f)"
left=$(find /dev/shm -maxdepth 1 -name "shardmark-$(id -u)-*" -newer suites/tiny.yaml)
for file in $left; do if grep -qsF "$dir" "$file"; then fail "$file is left"; fi; done
rm bin/mpirun
echo "launch_starts: ok"
