#!/usr/bin/env bash
# NEEDS torch
# A sustained run: its intervals add up to the duration, samples and memory are bounded whatever the number of steps,
# and there is a report.
set -u
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1
fail() { echo "FAILED: $*"; exit 1; }
# shellcheck source=tests/waiting.bash
source "$(dirname "$0")/../waiting.bash"
# shellcheck source=tests/loaded.bash
source "$(dirname "$0")/../loaded.bash"
mkdir "$dir/tools"
load_program "$(realpath "$program")" "$dir/tools"

as_root=()
[ "$(id -u)" = 0 ] && as_root=(--allow-run-as-root)
ranks() { local n=$1; shift; timeout 600 mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$n" "${loaded[@]}" "$@"; }

cat >"$dir/s.yaml" <<'Y'
name: s
ranks: 2
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 20, duration: 2h}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: ddp, batch_size: 2}
Y
"$program" plan "$dir/s.yaml" --duration 90s >"$dir/plan" || fail "plan: $(cat "$dir/plan")"
grep -q 'at most 90.0 s of timed steps' "$dir/plan" || fail "the plan does not count the duration: $(cat "$dir/plan")"
ranks 2 run "$dir/s.yaml" -o "$dir/s.h5" --duration 3s 2>"$dir/err" || fail "run: $(cat "$dir/err")"
"$program" report "$dir/s.h5" --raw --json >"$dir/s.json" || fail "report --raw"
python3 - "$dir/s.json" <<'P' || exit 1
import json, sys
point, = json.load(open(sys.argv[1]))["points"]
series = point["samples"]
ends, steps, window = series["interval_end"][0], series["interval_steps"][0], series["window"]
def expect(holds, what):
    if not holds: sys.exit(f"FAILED: {what}: ends {ends}, steps {steps}, window {window}")
expect(point["outcome"] == "ok" and point["wanted_duration"] == 3, "a point that is ok and lasts 3 s")
expect(1 <= len(ends) <= 6 and ends == sorted(ends) and ends[-1] >= 3, "at most 6 intervals, up to 3 s or later")
for row in window:
    expect(len(row) == len(ends) and sum(row) <= ends[-1], "windows within the time of their intervals")
expect(sum(map(max, zip(*window))) > ends[-1] / 3, "windows that fill the intervals")
expect(sum(steps) == point["num_steps"] > 20, "every step counted, max_steps aside")
rate = point["samples_per_s"] * sum(map(max, zip(*window)))
expect(abs(rate / (4 * point["num_steps"]) - 1) < 1e-9, "a throughput of all steps")
for name in ("step", "forward", "exposed"):
    expect(len(series[name]) == 2 and 0 < len(series[name][0]) <= 500, f"at most 500 steps of {name}")
for name in ("interval_time", "interval_worst", "interval_compute"):
    expect(len(series[name]) == 2 and all(len(row) == len(ends) and min(row) > 0 for row in series[name]), name)
expect(all(t <= w for ts, ws in zip(series["interval_time"], series["interval_worst"]) for t, w in zip(ts, ws)), "a median below the longest")
P
"$program" report --all "$dir/s.h5" >"$dir/report" || fail "report"
grep -q 'Sustained runs: step time from the first to the last tenth' "$dir/report" || fail "no table: $(cat "$dir/report")"

# The intervals are reported during the run, and if a rank hangs, the record keeps them.
intervals() { grep -c '"progress":' "$dir/hangs.h5.journal" 2>/dev/null; }
ranks 2 run "$dir/s.yaml" -o "$dir/hangs.h5" --duration 2m --timeout 5 2>"$dir/err" &
run=$!
has_two_intervals() { [[ $(intervals) -ge 2 ]]; }
wait_for 300 "two intervals" has_two_intervals
"$program" report --all "$dir/hangs.h5" >"$dir/report" || fail "report while it goes on"
grep -q 'Sustained runs: step time' "$dir/report" && grep -q 'Every row:.* ended not yet' "$dir/report" || fail "nothing is told while it goes on: $(cat "$dir/report")"
for pid in $(pgrep -f "^$(realpath "$program") run $dir/s.yaml -o $dir/hangs.h5"); do
  if grep -qz '^OMPI_COMM_WORLD_RANK=1$' "/proc/$pid/environ"; then kill -STOP "$pid"; fi
done
status=0; wait "$run" || status=$?
[[ $status == 5 ]] || fail "a rank that hangs: status $status, not 5: $(cat "$dir/err")"
"$program" report --all "$dir/hangs.h5" >"$dir/report" || fail "report of what hung"
grep -q 'Sustained runs: step time' "$dir/report" && grep -q 'Every row:.* ended timed_out' "$dir/report" || fail "its intervals are lost: $(cat "$dir/report")"
"$program" report "$dir/hangs.h5" --raw --json | python3 -c '
import json, sys
point, = json.load(sys.stdin)["points"]
assert point["outcome"] == "timed_out" and len(point["samples"]["interval_end"][0]) >= 2, point' || fail "its record has no intervals"

# Steps take microseconds on one rank. A run that is eight times as long must not need more memory.
cat >"$dir/c.yaml" <<'Y'
name: c
ranks: 1
collectives: {operation: all_reduce, bytes: 8}
Y
python3 - "$program" "$dir" <<'P' || exit 1
import json, os, subprocess, sys
program, directory = sys.argv[1:]
def peak_and_steps(duration):
    study = f"{directory}/c{duration}.h5"
    child = subprocess.Popen([program, "run", f"{directory}/c.yaml", "-o", study, "--duration", f"{duration}s"], stderr=subprocess.DEVNULL)
    status, usage = os.wait4(child.pid, 0)[1:]
    if status != 0: sys.exit(f"FAILED: a run of {duration} s ended with {status}")
    point, = json.loads(subprocess.run([program, "report", study, "--raw", "--json"], stdout=subprocess.PIPE).stdout)["points"]
    return usage.ru_maxrss / 1024, point["num_steps"]
(before, few), (after, many) = peak_and_steps(1), peak_and_steps(8)
kept_all = (many - few) * 8 / 2**20  # MiB that one double per step would take
print(f"{few} steps: {before:.1f} MiB at most; {many} steps: {after:.1f} MiB")
if after - before > max(5, 0.2 * kept_all): sys.exit(f"FAILED: memory grows with the steps; one number for each would take {kept_all:.1f} MiB")
P
