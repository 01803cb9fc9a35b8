#!/usr/bin/env bash
# NEEDS torch
# The sweep as a user runs it: a study, its tables, resuming, and an error of one line and an exit status for every
# mistake.
set -u
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# shellcheck source=tests/loaded.bash
source "$(dirname "$0")/../loaded.bash"
mkdir "$dir/tools"
load_program "$(realpath "$program")" "$dir/tools"

as_root=()
[ "$(id -u)" = 0 ] && as_root=(--allow-run-as-root)
ranks() { local n=$1; shift; timeout 600 mpirun "${as_root[@]}" -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$n" "${loaded[@]}" "$@"; }
shardmark_lines() { grep -c '^shardmark:' "$1"; }

cat >"$dir/tiny.yaml" <<'Y'
name: tiny
ranks: [1, 2, 3]
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: 16, layers: 2}}
    data: synthetic
    strategy: [single, ddp, fsdp, zero3]
    optimizer: adamw
    batch_size: 2
collectives:
  - operation: [all_reduce, broadcast]
    bytes: [8, 4KiB]
    ranks: 2
Y

ranks 2 run "$dir/tiny.yaml" -o "$dir/x.h5" 2>"$dir/err" || fail "a plain run: $(cat "$dir/err")"
[ -f "$dir/x.h5" ] || fail "no study"
[ -e "$dir/x.h5.journal" ] && fail "a published study leaves no journal"
"$program" report --all "$dir/x.h5" >"$dir/report" || fail "report"
grep -q 'fsdp' "$dir/report" || fail "the report names no strategy"
grep -q 'more ranks than' "$dir/report" || grep -qi 'rank' "$dir/report" || fail "skipped points have no reason"
points=$("$program" report "$dir/x.h5" --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["tables"]))')
[ "$points" -ge 5 ] || fail "only $points tables"
"$program" report "$dir/x.h5" --raw --json | python3 -c '
import json, sys
parts = [name + "_time" for name in ("program", "mpi", "communicators", "model", "first_step")]
for point in json.load(sys.stdin)["points"]:
    known = [name for name in parts if (point.get(name) or 0) > 0]
    expected = parts if point["workload"] == "training" and point["outcome"] == "ok" else []
    assert known == expected, (point["id"], known)
    assert point.get("launcher_time") is None, "nothing says when mpirun was started"
' || fail "not all parts of the time to the first step are there"
grep -q 'Time to the first step, by part' "$dir/report" || fail "no table of the time to the first step"

before=$(stat -c %i "$dir/x.h5")
ranks 2 run "$dir/tiny.yaml" -o "$dir/x.h5" 2>"$dir/err"
[ $? = 2 ] || fail "an existing output was not refused with status 2"
[ "$(shardmark_lines "$dir/err")" = 1 ] || fail "not one line: $(cat "$dir/err")"
[ "$(stat -c %i "$dir/x.h5")" = "$before" ] || fail "a refused run touched the study"

ranks 2 run "$dir/tiny.yaml" -o "$dir/x.h5" --resume 2>"$dir/err" || fail "resume of a finished study: $(cat "$dir/err")"
grep -q '0 points measured' "$dir/err" || fail "a finished point was run again: $(cat "$dir/err")"

# The suite is edited under the same name. The difference is reported once, and both texts are in the study.
sed 's/batch_size: 2/batch_size: [2, 3]/' "$dir/tiny.yaml" >"$dir/edited"
cp "$dir/tiny.yaml" "$dir/before.yaml"
cp "$dir/edited" "$dir/tiny.yaml"
ranks 2 run "$dir/tiny.yaml" -o "$dir/x.h5" --resume 2>"$dir/err" || fail "resume with an edited suite: $(cat "$dir/err")"
[ "$(grep -cF "tiny.yaml was edited since $dir/x.h5 began, and points of both texts are in it: line 9: '    batch_size: 2' is '    batch_size: [2, 3]' now" "$dir/err")" = 1 ] ||
  fail "an edited suite is not told: $(cat "$dir/err")"
"$program" report "$dir/x.h5" --raw --json | python3 -c '
import json, sys
study = json.load(sys.stdin)["environment"]
before, now = (open(name).read() for name in sys.argv[1:])
assert study["suite"] == now and [launch.get("former_suite") for launch in study["facts"]["resumed"]] == [None, before]
' "$dir/before.yaml" "$dir/tiny.yaml" || fail "not both texts of an edited suite are kept"
cp "$dir/before.yaml" "$dir/tiny.yaml"

refused() {  # what, expected status, text of the one line, command
  local what=$1 status=$2 words=$3; shift 3
  "$@" >"$dir/out" 2>"$dir/err"
  local got=$?
  [ $got = "$status" ] || fail "$what: status $got, not $status: $(cat "$dir/err")"
  [ "$(shardmark_lines "$dir/err")" = 1 ] || fail "$what: not one line: $(cat "$dir/err")"
  grep -q -- "$words" "$dir/err" || fail "$what: does not say '$words': $(cat "$dir/err")"
  grep -q -i 'terminate called\|stack\|backtrace' "$dir/err" && fail "$what: a stack trace"
}
sed 's/strategy:/stratgy:/' "$dir/tiny.yaml" >"$dir/key.yaml"
refused "unknown key" 2 "key.yaml:7:" ranks 2 run "$dir/key.yaml" -o "$dir/y.h5"
refused "unwritable output" 2 "$dir/no/such" ranks 2 run "$dir/tiny.yaml" -o "$dir/no/such/y.h5"
sed 's/data: synthetic/data: {text: {files: "'"${dir//\//\\/}"'\/nothing*"}}/; s/{mlp:.*/{gpt2: {layers: 1, width: 8, heads: 1, sequence: 8, vocabulary: 256}}/' "$dir/tiny.yaml" >"$dir/data.yaml"
refused "missing data" 2 "nothing" ranks 2 run "$dir/data.yaml" -o "$dir/y.h5"
if ! nvidia-smi >/dev/null 2>&1; then
  refused "no GPU" 2 "GPU" ranks 2 run "$dir/tiny.yaml" -o "$dir/y.h5" --device cuda
  refused "NCCL without a GPU" 2 "GPU" ranks 2 run "$dir/tiny.yaml" -o "$dir/y.h5" --transport nccl
fi
ls "$dir"/y.h5* 2>/dev/null && fail "a refused run left files"

# Running out of memory is an outcome that all ranks agree on, and the sweep continues.
cat >"$dir/memory.yaml" <<'Y'
training: {model: {mlp: {features: 1024, width: [16, 1024], layers: 2, classes: 8}}, strategy: ddp, optimizer: {sgd: {momentum: 0}}, batch_size: 2}
ranks: 2
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3}
Y
ranks 2 run "$dir/memory.yaml" -o "$dir/m.h5" --memory 10MiB 2>"$dir/err" || fail "out of memory ended the sweep: $(cat "$dir/err")"
"$program" report "$dir/m.h5" --raw --json | python3 -c '
import json, sys
outcomes = {point["model"].split("width=")[1].split(",")[0]: point["outcome"] for point in json.load(sys.stdin)["points"]}
assert outcomes == {"16": "ok", "1024": "out_of_memory"}, outcomes' || fail "not one point of two is out of memory"

exit $((failures > 0))
