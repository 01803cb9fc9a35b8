#!/usr/bin/env bash
# QUICK
# The reference collection: shardmark list reference, report --share, and how report and compare use it: with the studies of results/reference as if other
# hosts had measured them, and with studies that are not admitted.
set -euo pipefail

home=$PWD
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"
can_use python3 || exit 77
single=$home/results/reference/h100-gpu-single.h5

# The launches slow1 ... slow3 have the same points on another host, a fifth slower.
"$shardmark" report "$single" --raw --json >single.json
cat >make.py <<'PYTHON'
import json
def checksum(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return "%016x" % h
def seal(line):
    body = "," + json.dumps(line, separators=(",", ":"))[1:]
    return '{"checksum":"%s"%s\n' % (checksum(body), body)
def write(path, study):
    """The study as the files of a run that has not ended."""
    with open(path + ".journal", "w") as journal:
        journal.write(seal({"schema": study["schema"], "environment": study["environment"]}))
        for point in study["points"]:
            point = {key: value for key, value in point.items() if key != "samples"}
            journal.write(seal({"record": point, "samples": {"offset": 0, "checksum": checksum(""), "series": []}}))
    open(path + ".samples", "w")
if __name__ == "__main__":
    for launch in 1, 2, 3:
        study = json.load(open("single.json"))
        study["environment"].update(nodes=["elsewhere"], rank_nodes=["elsewhere"], threads_per_rank=8,
                                    started=f"2026-12-0{launch}T00:00:00Z", command_line="/home/somebody/run")
        for point in study["points"]:
            point["started"] = f"2026-12-0{launch}T00:01:00Z"
            for key in "step", "step_low", "step_high":
                point[key] *= 1.25
        write(f"slow{launch}.h5", study)
PYTHON
python3 make.py

# The collection is found next to the sources of the program from any directory. It is used on the first screen, as a
# table, and on the page.
"$shardmark" list reference >list
has list 'The reference collection' 'NVIDIA H100 80GB HBM3' 'gpu-single' 'gpu-strategies' 'h100-gpu-single.h5'
is_narrow list
"$shardmark" report slow1.h5 >screen
tr '\n' ' ' <screen >one_line
has one_line '80 % of the speed of the reference NVIDIA H100 80GB HBM3: median of 12 points' 'matrix product bf16: 82 % of the data sheet' \
  'of what was published; --table reference'
[[ $(wc -l <screen) -le 60 ]] || fail "the first screen has $(wc -l <screen) lines"
"$shardmark" report slow1.h5 --table reference --json >json  # with its part rates
python3 - <<'PYTHON' || fail "the table of references: $(cat json)"
import json
table, rates = json.load(open("json"))["tables"]
assert (table["key"], rates["key"]) == ("reference", "reference.rates")
assert len(table["rows"]) == 12
for row in table["rows"]:
    assert abs(row["speed of the reference"] - 80) < 0.5, row
    assert row["speed low"] < 80 < row["speed high"] and row["launches reference"] in (1, 2), row
    assert row["study"].startswith("h100-gpu-") and row["revision"] == "ec3fa8749c13" and "torch 2.11.0" in row["versions"], row
PYTHON
"$shardmark" report slow1.h5 --table reference.rates >rates
has rates '989' '794.5' 'https://github.com/stas00/ml-engineering'
"$shardmark" report slow1.h5 --html page.html >files
has page.html 'Is this good?' '80 % of the speed of the reference'

# A machine that nobody has measured yet, and a study that is itself in the collection.
"$shardmark" report small.h5 | tr '\n' ' ' >one_line
has one_line 'Is this good? Computing: training reaches '
grep -q 'reference collection' one_line && fail "a reference for a machine that nobody measured"
"$shardmark" report "$home"/results/reference/h100-*.h5 | tr '\n' ' ' >one_line
has one_line 'These points are themselves in the reference collection.'

# One launch against one decides nothing. Three launches show that it is slower.
status=0
"$shardmark" compare --reference slow1.h5 >out 2>err || status=$?
[[ $status == 4 ]] || fail "one launch against the reference: exit status $status: $(cat out err)"
has out 'before, 1 launch after' 'fewer than 3 launches on both sides'
status=0
"$shardmark" compare --reference slow1.h5 slow2.h5 slow3.h5 >out 2>err || status=$?
[[ $status == 1 ]] || fail "three slower launches against the reference: exit status $status: $(cat out err)"
has out 'before, 3 launches after' 'SLOWER' 'on other hosts with equal devices'
command=compare
refuses 'none of these points' --reference small.h5
refuses '--old' --reference small.h5 --old again.h5
command=report

# Studies that are not admitted: each reason has a line, and nothing is written.
status=0
"$shardmark" report slow1.h5 --share new >out 2>err || status=$?
[[ $status == 2 && ! -e new && ! -s out ]] || fail "an unfinished study was added: exit status $status: $(cat out err)"
has err 'slow1.h5 does not come into the reference collection:' '  not published: ' '  too few repeats: 12 points'
status=0
"$shardmark" report "$single" --share new >out 2>err || status=$?
[[ $status == 2 && ! -e new ]] || fail "a study was added twice: exit status $status: $(cat out err)"
has err '  in the collection already'
refuses '--share takes one study, got 2' slow1.h5 slow2.h5 --share new
refuses '--csv excludes --share' small.h5 --share new --csv tables

# A published study with enough repeats is admitted, without the name of its host. Its points were measured here, but
# for their times, which would depend on what else this machine does.
if "$shardmark" run --help >run_help 2>&1; then
  cat >tiny.yaml <<'YAML'
name: tiny
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: single, batch_size: 2, ranks: 1}
YAML
  measures() { "$shardmark" run tiny.yaml -o "$1.h5" --repeats 3 --device cpu -q "${@:2}" 2>err || fail "run: $(cat err)"; }
  measures measured
  "$shardmark" report measured.h5 --raw --json >measured.json
  cat >even.py <<'PYTHON'
import json
from make import write
study = json.load(open("measured.json"))
for point in study["points"]:
    point.update(dict.fromkeys(["step", "step_low", "step_high", "step_p10", "step_p90", "step_p99"], 0.001),
                 variation=0, drift=0, samples_per_s=2000)
write("secret.h5", study)
PYTHON
  python3 even.py
  measures secret --resume    # publishes it, and measures nothing
  status=0
  "$shardmark" report secret.h5 --share new >out 2>err || status=$?
  if [[ $status == 0 ]]; then
    added=$(cat out)
    [[ -f $added ]] || fail "no file $added"
    for name in "$(uname -n)" tiny.yaml "$PWD"; do
      ! grep -qF -- "$name" "$added" || fail "$name is in $added"
    done
    "$shardmark" report "$added" >screen
    "$shardmark" report secret.h5 --share new 2>err && fail "it was added twice" || has err 'in the collection already'
  else
    [[ $(grep -c '^shardmark:   ' err) == 1 ]] || fail "not admitted: $(cat err)"
    has err '-dirty: the program was built from files that no revision holds'
    echo "left out: adding a study, for this program was built from files that were not committed"
  fi
fi
