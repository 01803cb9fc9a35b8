#!/usr/bin/env bash
# NEEDS torch
# run --openmetrics: the points and the progress of a running sweep, in a file that is complete at any time. Also its
# contents at the end and after kill -9, what happens if it cannot be written, and which files are refused.
set -euo pipefail
# shellcheck source=tests/own_memory.bash
source "$(dirname "$0")/../own_memory.bash"
program=$(realpath "$1")
home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(realpath "$(mktemp -d)")
cd "$dir"
job=
# Prints the launcher and the ranks that this script has started, which are those that run in its folder.
ours() {
  pgrep -f "$program run" | while read -r pid; do [[ $(readlink "/proc/$pid/cwd") != "$dir" ]] || echo "$pid"; done
}
# Also removes their shared memory. A killed mpirun leaves it behind, and tests that look for leftovers would find it.
kill_ours() {
  local all shared
  mapfile -t all < <(ours)
  mapfile -t shared < <(for pid in "${all[@]}"; do grep -so '/dev/shm/vader_segment[^ ]*' "/proc/$pid/maps" || true; done | sort -u)
  kill -KILL "${all[@]}" 2>/dev/null || true
  rm -f "${shared[@]}"
}
finish() { [[ -z $job ]] || kill_ours; rm -rf "$dir"; leave_own_memory; }
trap finish EXIT
export OMP_NUM_THREADS=1
fail() { echo "FAILED: $*"; exit 1; }
# shellcheck source=tests/waiting.bash
source "$(dirname "${BASH_SOURCE[0]}")/../waiting.bash"
# shellcheck source=tests/loaded.bash
source "$home/tests/loaded.bash"
mkdir tools
load_program "$program" "$dir/tools"
has() { local file=$1 text; shift; for text in "$@"; do grep -qF -- "$text" "$file" || fail "'$text' is not in: $(cat "$file")"; done; }
mpirun=(mpirun --allow-run-as-root -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 -n 2)
run() { "${mpirun[@]}" "${loaded[@]}" run "$@" --device cpu; }

cat >tiny.yaml <<'Y'
name: tiny
ranks: [1, 2, 3]
sampling: {warmup_steps: 1, min_steps: 20, max_steps: 20}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: [single, ddp, fsdp], batch_size: 2}
Y

cat >check.py <<'PYTHON'
"""check.py FILE NAME VALUE ...: the file is whole, and the progress has these values ('-': there is none)."""
import re, sys
text = open(sys.argv[1]).read()
assert text.endswith("# EOF\n") and text.startswith("# TYPE shardmark_"), text
values = {}
for line in text.splitlines()[:-1]:
    if line.startswith("#"): continue
    name, labels, value = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)', line).groups()
    if name.startswith("shardmark_sweep_"):
        assert name not in values and 'study="x"' in labels, line
        values[name.removeprefix("shardmark_sweep_")] = float(value)
for name, value in zip(sys.argv[2::2], sys.argv[3::2]):
    assert (name not in values) if value == "-" else values.get(name) == float(value), (name, value, values)
assert 0 <= values["elapsed_seconds"] < 3600 < values["change_time_seconds"]
try:
    from prometheus_client.openmetrics import parser
except ImportError:
    pass
else:
    list(parser.text_string_to_metric_families(text))
PYTHON
python3=$home/.venv/bin/python3
[[ -x $python3 ]] || python3=python3
metrics() { "$python3" check.py "$@" || fail "$*: $(cat "$1")"; }

# Runs to the end while the file is read as a collector does: it is always complete. There are 9 points, and those of 3
# ranks are skipped.
run tiny.yaml -o x.h5 --openmetrics live.prom 2>err &
job=$!
seen=0
while kill -0 "$job" 2>/dev/null; do
  if [[ -e live.prom ]]; then metrics live.prom; seen=$((seen + 1)); fi
  sleep 0.05
done
wait "$job" || fail "the run: $(cat err)"
job=
[[ $seen -gt 0 ]] || fail "there was no file while it ran"
metrics live.prom running 0 done_points 9 to_go_points 0 failed_points 0 point_start_time_seconds -
[[ $(ls live.prom*) == live.prom ]] || fail "a file was left behind: $(ls live.prom*)"
"$program" report x.h5 --openmetrics after.prom
diff <(grep -v sweep_ live.prom) after.prom || fail "a sweep that has ended says something else than its report"

# After kill -9, the file has the last values and their time. Then the resumed run writes the same file again.
sed 's/max_steps: 20/max_steps: 1000000/; s/min_steps: 20/min_steps: 1000000/; s/ddp, fsdp/ddp/' tiny.yaml >long.yaml
rm x.h5
run long.yaml -o x.h5 --openmetrics live.prom 2>err &
job=$!
wait_for 300 "a point in the metrics" grep -qs 'shardmark_sweep_point_start_time_seconds{study="x",point="' live.prom
kill_ours
wait "$job" 2>/dev/null || true
job=
before=$(date +%s)
metrics live.prom running 1 failed_points 0
has live.prom 'point="training mlp'
[[ $(awk '/^shardmark_sweep_change_time_seconds/ {print int($2)}' live.prom) -le $before ]] || fail "it was changed after the end"

# If the folder disappears, the sweep prints one warning and continues.
rm -f x.h5*
mkdir gone
run tiny.yaml -o x.h5 --openmetrics gone/live.prom 2>err &
job=$!
until [[ -e gone/live.prom ]]; do sleep 0.02; done
until rm -rf gone 2>err-rm; do :; done    # a new file may appear at any moment
wait "$job" || fail "a sweep without a folder for its metrics: $(cat err)"
job=
[[ $(grep -c 'metrics are not written, and the sweep goes on without them' err) == 1 ]] || fail "not one warning: $(cat err)"
has err '6 points measured, 3 skipped; study: x.h5'

# A suite that starts its ranks several times: the points of all starts are counted.
cat >starts.yaml <<'Y'
name: starts
ranks: 2
environment: [{}, {OMPI_MCA_btl_vader_eager_limit: 65536}]
sampling: {warmup_steps: 0, min_steps: 1, max_steps: 1}
collectives: {operation: all_reduce, bytes: [8, 64]}
Y
mkdir starts
"$program" launch starts.yaml -n 2 -o starts/x.h5 --launcher-flag=--oversubscribe -- --openmetrics starts.prom 2>err ||
  fail "a suite of two starts: $(cat err)"
metrics starts.prom running 0 done_points 4 to_go_points 0

# These are refused before anything starts.
refuses() {
  local status=0 text=$1
  shift
  run tiny.yaml -o y.h5 --openmetrics "$@" 2>err || status=$?
  [[ $status == 2 && $(grep -c '^shardmark:' err) == 1 ]] || fail "$*: status $status: $(cat err)"
  has err "$text"
  [[ ! -e y.h5 && ! -e y.h5.journal ]] || fail "$*: a study was begun"
}
refuses 'no/live.prom: cannot be written' no/live.prom
refuses 'tiny.yaml exists and holds something else than metrics of shardmark' tiny.yaml
refuses '/dev/null is not a regular file' /dev/null
refuses '. is a directory' .
"$program" launch tiny.yaml -n 2 -o z.h5 --print -- --openmetrics live.prom >out
has out "--openmetrics live.prom"
