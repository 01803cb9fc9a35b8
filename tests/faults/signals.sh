#!/usr/bin/env bash
# NEEDS torch
# Ranks are killed, terminated or stopped at random moments. faults.bash defines what must hold after each fault.
set -uo pipefail
# shellcheck source=tests/faults/faults.bash
source "$(dirname "$0")/faults.bash"

survivable=(kill_a_rank kill_rank_0 kill_all_ranks end_a_rank stop_a_rank stop_at_start stop_at_end)
fault_kill_a_rank() { kill -KILL "${rank_pid[1]}"; }
fault_kill_rank_0() { kill -KILL "${rank_pid[0]}"; }
fault_kill_all_ranks() { kill -KILL "${rank_pid[@]}"; }
fault_end_a_rank() {
  random 2
  kill -TERM "${rank_pid[$chosen]}"
}
fault_end_the_job() { kill -TERM "$job"; }

# A stopped rank is found and named by the watchdog, within its timeout plus five seconds.
flags_stop_a_rank=(--timeout 5)
fault_stop_a_rank() {
  random 2
  local rank=$chosen still
  named() { grep -q "behind: rank $rank on" "$log"; }
  named_or_done() { named || grep -q 'points measured' "$log"; }
  kill -STOP "${rank_pid[$rank]}"
  within 60 named_or_done || fail "rank $rank is not named: $(tail -n 5 "$log")"    # its neighbour may still be loading
  if within 15 named; then    # otherwise it stopped after everything was done
    still=$(sed -n 's/.*no progress for \([0-9]*\) s.*/\1/p' "$log" | sed -n 1p)
    [[ ${still:-0} -le 10 ]] || fail "rank $rank is named only $still s after it stopped"
    return
  fi
  kill -CONT "${rank_pid[$rank]}"
  return 1
}
# The exit status and the study say so, unless rank 0 was stopped and nobody could write.
after_stop_a_rank() {
  [[ $landed == yes ]] || return 0
  [[ $via != run || $status == 5 ]] || fail "$kind: the job ended with $status, not 5"
  [[ $via != run ]] || grep -q 'stopped by a signal' "$log" || fail "$kind: not said to be stopped: $(tail -n 5 "$log")"
}

# The same while the ranks start, before MPI can query other ranks.
flags_stop_at_start=(--timeout 5)
fault_stop_at_start() { fault_stop_a_rank; }
after_stop_at_start() { after_stop_a_rank; }

# The same in MPI_Finalize, after the watchdog has ended, when the study is complete.
flags_stop_at_end=(--timeout 5)
fault_stop_at_end() {
  if ! within 120 grep -q 'behind: rank 1 on .*stopped by a signal' "$log"; then
    fail "rank 1 is not named where it stopped in MPI_Finalize: $(tail -n 5 "$log")"
  fi
}
after_stop_at_end() {
  [[ $via != run || $status == 5 ]] || fail "$kind: the job ended with $status, not 5"
  [[ ! -e $study.journal ]] || fail "$kind: the study was not complete"
}

strike_all kill_a_rank kill_rank_0 kill_all_ranks end_a_rank end_the_job stop_a_rank stop_at_start
if wanted stop_at_end; then
  command -v mpicxx >/dev/null || skip "no mpicxx to stop a rank in MPI_Finalize with: run jobs/bootstrap.sh"
  mpicxx -shared -fPIC -O1 -std=c++20 "$home/tests/faults/stop_in_finalize.cpp" -o "$dir/stop.so" ||
    fail "what stops a rank in MPI_Finalize does not build"
  prefix=(LD_PRELOAD="$dir/stop.so")
  strike stop_at_end
fi
