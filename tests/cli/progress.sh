#!/usr/bin/env bash
# NEEDS torch
# What a user sees during a sweep: what will happen, the progress, and the remaining time. On a terminal this is one
# line, also through launch and mpirun; in a log it is a line every half minute. The report of an unfinished study says
# how to resume it.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
mpi=(mpirun "${as_root[@]}" --oversubscribe --bind-to none -n 2)

cat >tiny.yaml <<'Y'
name: tiny
ranks: [2]
sampling: {duration: 1.5s, warmup_steps: 1}
collectives:
  - operation: all_reduce
    bytes: [1KiB, 2KiB, 4KiB]
Y
cat >short.yaml <<'Y'
name: short
ranks: [2]
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5, time_limit: 1.5}
collectives:
  - operation: all_reduce
    bytes: [1KiB, 2KiB, 4KiB]
Y
cat >alone.yaml <<'Y'
name: alone
ranks: [1]
sampling: {duration: 1.5s, warmup_steps: 1}
training:
  - model: {mlp: {features: 8, width: 16, layers: 2}}
    strategy: single
    batch_size: [2, 4, 8]
Y
cat >long.yaml <<'Y'
name: long
ranks: [1]
sampling: {duration: 600s, warmup_steps: 1}
training:
  - model: {mlp: {features: 8, width: 16, layers: 2}}
    strategy: single
    batch_size: 2
Y

# A point that takes longer than half a minute has a line of its own. The rank is stopped for this time, beside the rest of
# the test, and ended as soon as the line is there.
rank_of_long() { pgrep -f "^$program run long.yaml -o $dir/long.h5"; }
has_begun() { grep -q '"began"' long.h5.journal && rank_of_long; }
tells_time() { grep -q '\[0/1\] [0-9]' long.out; }    # on a busy machine it says more than a minute
half_a_minute() {
  local launched
  "$program" launch long.yaml -n 1 -o "$dir/long.h5" >long.out 2>&1 &
  launched=$!
  within 300 has_begun || return 1
  kill -STOP "$(rank_of_long)"
  sleep 31
  kill -CONT "$(rank_of_long)"
  within 300 tells_time || return 1
  kill -TERM $launched
  wait $launched || true
}
half_a_minute &
long=$!
# shellcheck disable=SC2046  # numbers of processes
trap '{ kill -KILL $long $(rank_of_long); } 2>/dev/null || true; rm -rf "$dir"' EXIT

# on_terminal FILE COMMAND...: runs the command with stderr on a terminal of 80 columns. The output goes to the file.
on_terminal() {
  python3 - "$@" <<'P'
import fcntl, os, pty, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
with open(sys.argv[1], "wb") as file:
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:    # the other end of the terminal is closed
            break
        if not read:
            break
        file.write(read)
sys.exit(process.wait())
P
}
# shown FILE: the output is one line that is rewritten with the times, never exceeds the terminal, and is removed at the
# end.
shown() {
  python3 - "$1" <<'P' || fail "the terminal's line: $(cat -v "$1")"
import re, sys
text = open(sys.argv[1], "rb").read().decode()
lines = [line for line in re.split(r"\r\x1b\[K", text)[1:]]
status = [line for line in lines if re.match(r"\[\d/3\] \d+:\d\d", line)]
assert len(status) >= 4, "too few"
assert all(len(line.split("\n")[0]) < 80 for line in status), "wider than the terminal"
assert any(re.match(r"\[[23]/3\] 0:\d\d, about 0:\d\d left: ", line) for line in status), "no time left"
assert "all_reduce" in status[0], "what runs"
assert any(re.match(r"\[1/3\] 0:0\d: ", line) for line in status), "elapsed time in the first point"
assert not re.search(r"\[\d/3\][^\r]*shardmark:", text), "a line after the line that is written anew"
assert not re.match(r"\[\d/3\]", lines[-1]), "it is left"
P
}

on_terminal launched "$program" launch tiny.yaml -n 2 -o launched.h5 || fail "launch: $(cat launched)"
shown launched
grep -qF "tiny.yaml -> launched.h5; 3 points, at most 4.50 s of timed steps" launched || fail "launch says what will happen: $(cat launched)"
[[ $(grep -c 'at most' launched) == 1 ]] || fail "it is said once: $(cat -v launched)"

runs "${mpi[@]}" "$program" run short.yaml -o quiet.h5 -q; ends 0; lacks "at most" "[3/3]" "ranks on 1 node"
runs "${mpi[@]}" "$program" run short.yaml -o quiet.h5 --resume; ends 0; has "0 points, at most 0 s of timed steps; 3 from before"

# Without a terminal, there is a line for each point, and first a line about what will happen. There are no control
# characters. The command that resumes a study can be typed as it is printed, whichever program started the ranks.
hint() { "$program" report "$1" | tr '\n' ' ' | tr -s ' ' | sed -n "s/.*resume on $2 with: \(.* --resume\).*/\1/p"; }
stopped() {    # STUDY COMMAND...: ended by a signal after its first point
  local study=$1; shift
  "$@" >out 2>&1 &
  local started=$!
  PAUSE=0.02 wait_for 600 "a point of $study" grep -qs '"ended"\|"outcome":"ok"' "$study.journal"
  kill -TERM $started
  wait $started && fail "it was not stopped: $(cat out)"
  said=$(cat out)
}
goes_on() {    # STUDY RANKS COMMAND: stopped, it can be resumed by this command, which its report gives
  has "3 points, at most 4.50 s of timed steps"; lacks $'\r'
  [[ $(hint "$1" "$2") == "$3" ]] || fail "the hint of $1: $(hint "$1" "$2")"
  runs bash -c "$3"; ends 0; has "[3/3] "; lacks $'\r'
  runs "$program" report "$1"; ends 0; has "3 points: 3 ok"; lacks "to go"
}
stopped l.h5 "$program" launch alone.yaml -n 1 -o l.h5
has "to go on: $program launch alone.yaml -n 1 -o l.h5 --resume"
goes_on l.h5 "1 rank" "$program launch alone.yaml -n 1 -o l.h5 --resume"
stopped m.h5 "${mpi[@]}" "$program" run tiny.yaml -o m.h5
has "shardmark: 3 points"
goes_on m.h5 "2 ranks" "${mpi[*]} $program run tiny.yaml -o m.h5 --resume"

wait $long || fail "no line after half a minute: $(cat long.out)"
said=$(cat long.out); has "1 point, at most 10 min"

echo "progress: on terminals, through launch, and in logs"
