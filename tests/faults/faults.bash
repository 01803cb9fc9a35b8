# What the tests of faults share, to be sourced: a study of small points, ranks that fill it, the random moments, and what
# must hold after every fault. A test is a script with a function `fault_KIND` for each kind of fault.
#   tests/faults/x.sh PROGRAM [KIND...]    only these kinds
#   FAULTS=n   how often each (default: 1; 20 with SOAK=1)       SEED=n   of the random moments; printed
#   VIA=run    plain mpirun, and `run --resume` after a fault; VIA=launch: `shardmark launch`, which resumes by itself; by
#              turns unless set
# shellcheck source=tests/script.bash
source "$(dirname "${BASH_SOURCE[0]}")/../script.bash"

program=$(realpath "${1:?usage: tests/faults/$(basename "$0") path/to/shardmark [KIND...]}")
shift
kinds=("$@")
faults=${FAULTS:-$(if [[ -n ${SOAK:-} ]]; then echo 20; else echo 1; fi)}
via=${VIA:-run}          # of this fault
seed=${SEED:-$RANDOM}
RANDOM=$seed
export OMP_NUM_THREADS=1
mark=SHARDMARK_FAULT_TEST=$$-$seed    # in the environment of all that a test starts: see `ours`
out=$dir/out                          # holds the study and nothing else
study=$out/x.h5
log=$dir/run.log
suite=$dir/sweep.yaml
mkdir "$out"
touch "$dir/begin"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
# What starts the ranks of a run, ending with their number; what `launch` needs to be told of that; what comes before all.
on_ranks=(mpirun "${as_root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2)
launcher_flags=()
prefix=()
survivable=()    # kinds after which `launch` has to complete the study by itself

write_suite() {
  cat >"$suite" <<'TEXT'
name: sweep
ranks: [1, 2]
sampling: {warmup_steps: 1, min_steps: 20, max_steps: 20, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: 512, layers: 4}}
    strategy: [single, ddp, fsdp, zero3]
    batch_size: [2, 4, 8]
TEXT
  points=24
}
write_suite

# random LIMIT: `chosen` becomes a number from 0 to LIMIT - 1. In $(...) bash would seed anew.
random() { chosen=$((RANDOM % $1)); }
# pause_up_to MILLISECONDS
pause_up_to() {
  random "$1"
  sleep "$(printf '0.%03d' "$chosen")"
}

# --- processes --------------------------------------------------------------------------------------------------------

ours() { marked "$mark"; }    # all that was started, and what they started
variable() { tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n "s/^$2=//p"; }
is_rank() { [[ $(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) == "$program run "* ]]; }

# The process of each rank in `rank_pid`; fails when not all are there.
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

# start FLAGS OF run...: in the background; `job` is the process that a user would have started.
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

# A random moment of a run that has just been started: after a random number of finished points, and somewhere in the
# next; now and then, and for a fault `_at_start` always, while the ranks start. Fails when the run ended before.
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

# end_of_job SECONDS: it ends by itself within them; its exit status is in `status`.
end_of_job() {
  within "$1" ended || fail "$kind: the job goes on $1 s after the fault: $(ps -o pid,stat,args -p "$(ours | paste -sd,)")"
  status=0
  wait "$job" 2>/dev/null || status=$?
}

# --- what must hold ---------------------------------------------------------------------------------------------------

# Files of shared memory that appeared since the test began and that no process uses. The marks of launches name their folder
# of temporary files: those of other tests, which run beside, are not ours.
left_in_memory() {
  local file
  find /dev/shm -maxdepth 1 -type f -newer "$dir/begin" -user "$(id -un)" 2>/dev/null | while read -r file; do
    if [[ $file == /dev/shm/shardmark-* ]] && ! sed -n 2p "$file" 2>/dev/null | grep -qxF -- "$TMPDIR"; then continue; fi
    grep -qsF -- "$file" /proc/[0-9]*/maps || echo "$file"
  done
}
nothing_in_memory() { [[ -z $(left_in_memory) ]]; }
no_session() { [[ -z $(find "$TMPDIR" -mindepth 1 -not -name 'ompi.*' -not -name 'pid.*' -not -type d) ]]; }

nothing_left() {
  within 30 none_marked "$mark" || fail "$kind: left behind: $(ps -o pid,stat,args -p "$(ours | paste -sd,)")"
  within 10 nothing_in_memory || fail "$kind: left in /dev/shm: $(left_in_memory)"
  within 10 no_session || fail "$kind: session files left behind: $(find "$TMPDIR" -mindepth 1)"
}

# check_kept [--points N ...]: what was finished before the fault is there and readable.
check_kept() {
  if [[ ! -e $study && ! -e $study.journal ]]; then
    [[ ! -s $dir/before.journal ]] || fail "$kind: the study is gone"
    return
  fi
  "$program" export "$study" --json - >"$dir/after.json" 2>"$dir/export.log" || fail "$kind: the study is unreadable"
  "$python" "$home/tests/faults/check_fault.py" "$dir/before.journal" "$dir/after.json" "$@" ||
    fail "$kind: the study is not what it was"
}

# Nothing where there is no journal: no study yet, or a published one.
remember() { cp "$study.journal" "$dir/before.journal" 2>/dev/null || : >"$dir/before.journal"; }

# complete [--bad OUTCOME...]: goes on with the study until it is done; then every point is there once.
complete() {
  local turn
  for turn in 1 2 3; do
    if [[ $(ls "$out") == x.h5 ]]; then break; fi    # what a death at the very end has left, the next run takes away
    start
    end_of_job 600
  done
  [[ $turn -lt 3 || ! -e $study.journal ]] || fail "$kind: three resumed runs did not complete the study"
  check_kept --points "$points" "$@"
  [[ $(ls "$out") == x.h5 ]] || fail "$kind: files beside the complete study: $(ls "$out")"
  nothing_left
}

# --- the test ---------------------------------------------------------------------------------------------------------

# One fault of a kind, in a study of its own: fault_KIND strikes at the ranks in `rank_pid`, flags_KIND are flags of the
# run, after_KIND looks at its end and fixes what broke; bad_KIND: how points may end. Fails when the fault met nothing.
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

# strike KIND: as often as asked, and says what it took.
strike() {
  local kind=$1 landed=0 missed=0 begun=$SECONDS
  while [[ $landed -lt $faults ]]; do
    if [[ -z ${VIA:-} ]]; then via=$([[ $via == run ]] && echo launch || echo run); fi
    if one_fault; then landed=$((landed + 1)); else missed=$((missed + 1)); fi
    [[ $missed -le $((faults + 20)) ]] || fail "$kind: $missed runs were over before the fault"
  done
  echo "$kind: $landed faults, $points points after each, every one once; $((SECONDS - begun)) s"
}

# strike_all KIND...: those that are wanted.
strike_all() {
  local kind
  for kind in "$@"; do if wanted "$kind"; then strike "$kind"; fi; done
}

echo "$(basename "$0"): seed $seed, each fault $faults x, via ${VIA:-launch and run by turns}"
