# Sourced by the tests of faults. Provides a study of small points, ranks that measure it, random moments, and the
# checks that must hold after every fault. A test is a script with a function `fault_KIND` for each kind of fault.
#   tests/faults/x.sh PROGRAM [KIND...]    only these kinds
#   FAULTS=n   how often each (default: 1; 20 with SOAK=1)       SEED=n   of the random moments; printed
#   VIA=run    plain mpirun, and `run --resume` after a fault; VIA=launch: `shardmark launch`, which resumes by itself; by
#              turns unless set
# shellcheck source=tests/own_memory.bash
source "$(dirname "${BASH_SOURCE[0]}")/../own_memory.bash"
# shellcheck source=tests/script.bash
source "$(dirname "${BASH_SOURCE[0]}")/../script.bash"

program=$(realpath "${1:?usage: tests/faults/$(basename "$0") path/to/shardmark [KIND...]}")
shift
kinds=("$@")
faults=${FAULTS:-$(if [[ -n ${SOAK:-} ]]; then echo 20; else echo 1; fi)}
via=${VIA:-run}          # how this fault's run is started
seed=${SEED:-$RANDOM}
RANDOM=$seed
export OMP_NUM_THREADS=1
mark=SHARDMARK_FAULT_TEST=$$-$seed    # in the environment of everything that a test starts, see `ours`
out=$dir/out                          # has the study and nothing else
study=$out/x.h5
log=$dir/run.log
suite=$dir/sweep.yaml
at_end+=(leave_own_memory)
mkdir "$out"
touch "$dir/begin"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
# on_ranks: the command that starts the ranks of a run, which ends with their number. launcher_flags: the corresponding
# flags of `launch`. prefix: what comes before all of that.
on_ranks=(mpirun "${as_root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2)
launcher_flags=()
prefix=()
survivable=()    # kinds after which `launch` must complete the study by itself

write_suite() {
  cat >"$suite" <<'TEXT'
name: sweep
ranks: [1, 2]
sampling: {warmup_steps: 1, min_steps: 8, max_steps: 8, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: 512, layers: 4}}
    strategy: [single, ddp, fsdp, zero3]
    batch_size: [2, 4, 8]
TEXT
  points=24
}
write_suite

# random LIMIT: sets `chosen` to a number from 0 to LIMIT - 1. It prints nothing, because a subshell $(...) would reseed
# RANDOM.
random() { chosen=$((RANDOM % $1)); }
# pause_up_to MILLISECONDS
pause_up_to() {
  random "$1"
  sleep "$(printf '0.%03d' "$chosen")"
}

# --- processes --------------------------------------------------------------------------------------------------------

ours() { marked "$mark"; }    # all processes that a test started, directly or indirectly
variable() { tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n "s/^$2=//p"; }
is_rank() { [[ $(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) == "$program run "* ]]; }

# Sets `rank_pid` to the process of each rank. Fails if some are missing.
declare -A rank_pid
find_ranks() {
  local pid
  rank_pid=()
  for pid in $(ours); do
    if is_rank "$pid"; then rank_pid[$(variable "$pid" OMPI_COMM_WORLD_RANK)]=$pid; fi
  done
  [[ ${#rank_pid[@]} == "${on_ranks[-1]}" ]]
}

# --- a run ------------------------------------------------------------------------------------------------------------

# start FLAGS OF run...: starts a run in the background. `job` is the process that a user would have started.
start() {
  local command=("${on_ranks[@]}" "$program" run "$suite" -o "$study" --resume)
  if [[ $via == launch ]]; then
    command=("$program" launch "$suite" -o "$study" --resume -n "${on_ranks[-1]}"
      "${launcher_flags[@]/#/--launcher-flag=}" --)
  fi
  env "$mark" "${prefix[@]}" "${command[@]}" "$@" >"$log" 2>&1 &
  job=$!
  pids+=("$job")
}
running() { kill -0 "$job" 2>/dev/null; }
ended() { ! running; }
records() { if [[ -e $study.journal ]]; then grep -c '"record":' "$study.journal"; else echo 0; fi; }
enough_records() { [[ $(records) -ge $1 ]] || ended; }
ranks_started() { find_ranks || ended; }

# Waits for a random moment of a run that has just been started: after a random number of finished points, somewhere
# during the next one. Sometimes, and always for a fault `_at_start`, that is while the ranks start. Fails if the run
# ended earlier.
random_moment() {
  random $((points - 4))
  local wanted=$chosen
  if [[ $kind == *_at_start ]]; then wanted=0; fi
  if [[ $wanted == 0 ]]; then
    wait_for 300 "ranks" ranks_started
    pause_up_to 1000
  else
    wait_for 300 "$wanted finished points" enough_records "$wanted"
    pause_up_to 300
  fi
  running && find_ranks
}

# end_of_job SECONDS: the job ends by itself within this time. Sets `status` to its exit status.
end_of_job() {
  within "$1" ended || fail "$kind: the job goes on $1 s after the fault: $(ps -o pid,stat,args -p "$(ours | paste -sd,)")"
  status=0
  wait "$job" 2>/dev/null || status=$?
}

# --- what must hold ---------------------------------------------------------------------------------------------------

# Prints files in shared memory that appeared since the test began and that no process uses. Marks of `launch` contain
# the path of its folder for temporary files, so those of other tests are recognized and left out.
left_in_memory() {
  local file
  find /dev/shm -maxdepth 1 -type f -newer "$dir/begin" -user "$(id -un)" 2>/dev/null | while read -r file; do
    if [[ $file == /dev/shm/shardmark-* ]] && [[ $(sed -n 2p "$file" 2>/dev/null) != "$TMPDIR" ]]; then continue; fi
    grep -qsF -- "$file" /proc/[0-9]*/maps || echo "$file"
  done
}
nothing_in_memory() { [[ -z $(left_in_memory) ]]; }
no_session() { [[ -z $(find "$TMPDIR" -mindepth 1 -not -name 'ompi.*' -not -name 'pid.*' -not -type d) ]]; }

nothing_left() {
  within 30 none_marked "$mark" || fail "$kind: left behind: $(ps -o pid,stat,args -p "$(ours | paste -sd,)")"
  within 120 nothing_in_memory || fail "$kind: left in /dev/shm: $(left_in_memory)"
  within 120 no_session || fail "$kind: session files left behind: $(find "$TMPDIR" -mindepth 1)"
}

# check_kept [--points N ...]: everything that was finished before the fault exists and is readable.
check_kept() {
  if [[ ! -e $study && ! -e $study.journal ]]; then
    [[ ! -s $dir/before.journal ]] || fail "$kind: the study is gone"
    return
  fi
  "$program" report "$study" --raw --json >"$dir/after.json" 2>"$dir/export.log" || fail "$kind: the study is unreadable"
  "$python" "$home/tests/faults/check_fault.py" "$dir/before.journal" "$dir/after.json" "$@" ||
    fail "$kind: the study is not what it was"
}

# Copies the journal. The copy is empty if there is no journal, because there is no study yet or it is published.
remember() { cp "$study.journal" "$dir/before.journal" 2>/dev/null || : >"$dir/before.journal"; }

# complete [--bad OUTCOME...]: resumes the study until it is complete. Then every point exists once.
complete() {
  local turn
  for turn in 1 2 3; do
    if [[ $(ls "$out") == x.h5 ]]; then break; fi    # files left by a death at the very end are removed by the next run
    start
    end_of_job 600
  done
  [[ $turn -lt 3 || ! -e $study.journal ]] || fail "$kind: three resumed runs did not complete the study"
  check_kept --points "$points" "$@"
  [[ $(ls "$out") == x.h5 ]] || fail "$kind: files beside the complete study: $(ls "$out")"
  nothing_left
}

# --- the test ---------------------------------------------------------------------------------------------------------

# Runs one fault of a kind in a new study. fault_KIND acts on the ranks in `rank_pid`, flags_KIND are flags of the run,
# after_KIND checks its end and repairs what broke, and bad_KIND are outcomes that points may have. Fails if the fault
# had no effect.
one_fault() {
  local -n flags=flags_$kind bad=bad_$kind
  find "$out" -mindepth 1 -delete
  start "${flags[@]}"
  if ! random_moment; then
    end_of_job 600
    return 1
  fi
  remember
  local landed=yes
  "fault_$kind" || landed=no
  end_of_job 300
  nothing_left
  check_kept
  "$program" report "$study" >/dev/null 2>"$dir/report.log" || [[ ! -s $dir/before.journal ]] || fail "$kind: no report"
  if [[ $via == launch && $landed == yes && " ${survivable[*]} " == *" $kind "* ]]; then
    [[ $status -le 1 && ! -e $study.journal ]] || fail "$kind: launch ended with $status: $(tail -n 5 "$log")"
  fi
  if declare -F "after_$kind" >/dev/null; then "after_$kind"; fi
  complete "${bad[@]}"
  [[ $landed == yes ]]
}

wanted() { [[ ${#kinds[@]} == 0 || " ${kinds[*]} " == *" $1 "* ]]; }

# strike KIND: runs this kind of fault as often as wanted, and prints the time that it took.
strike() {
  local kind=$1 landed=0 missed=0 begun=$SECONDS
  while [[ $landed -lt $faults ]]; do
    if [[ -z ${VIA:-} ]]; then via=$([[ $via == run ]] && echo launch || echo run); fi
    if one_fault; then landed=$((landed + 1)); else missed=$((missed + 1)); fi
    [[ $missed -le $((faults + 20)) ]] || fail "$kind: $missed runs were over before the fault"
  done
  echo "$kind: $landed faults, $points points after each, every one once; $((SECONDS - begun)) s"
}

# strike_all KIND...: runs those kinds that the user wants.
strike_all() {
  local kind
  for kind in "$@"; do if wanted "$kind"; then strike "$kind"; fi; done
}

echo "$(basename "$0"): seed $seed, each fault $faults x, via ${VIA:-launch and run by turns}"
