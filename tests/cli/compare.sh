#!/usr/bin/env bash
# QUICK
# shardmark compare with launches made from tests/data/studies/small.h5: verdicts and exit statuses, and baselines with
# and without references. Bad input gives one line and exit status 2.
set -euo pipefail

# shellcheck source=tests/cli/junit.bash
source "$(dirname "$0")/junit.bash"
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"
command -v python3 >/dev/null || { echo "no python3 to make launches with"; exit 77; }
# compares STATUS ARGUMENT...: compare exits with this status. Its tables go to `out`.
compares() {
  local want=$1 status=0
  shift
  "$shardmark" compare "$@" >out 2>err || status=$?
  [[ $status == "$want" ]] || fail "compare $*: exit status $status instead of $want: $(cat out err)"
}

# Makes the launches old1 ... old5 and new1 ... new5 of small.h5, which differ by a few per cent. slow1 ... slow5 take
# 1.5 times as long. lost.h5 has a point that failed, in none.h5 all points failed, and part.h5 measured only two
# points.
cat >make.py <<'PYTHON'
import json, random, sys
def checksum(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return "%016x" % h
def seal(line):
    body = "," + json.dumps({k: v for k, v in line.items() if k != "checksum"}, separators=(",", ":"))[1:]
    return '{"checksum":"%s"%s\n' % (checksum(body), body)
lines = [json.loads(line) for line in open(sys.argv[1])]
random.seed(1)
def launch(name, start, factor=1.0, failed=0, measured=99):
    out = ""
    for line in json.loads(json.dumps(lines)):
        if "environment" in line:
            line["environment"].update(started=f"2026-01-01T{start:02}:00:00Z", versions={"torch": name[:3]})
        elif line["record"]["outcome"] == "ok":
            line["record"]["step"] *= factor * random.uniform(0.99, 1.01)
            if failed > 0:
                line["record"].update(outcome="failed", reason="rank 1 died", step=None)
                failed -= 1
            if measured == 0:
                continue
            measured -= 1
        out += seal(line)
    open(name + ".h5.journal", "w").write(out)
    open(name + ".h5.samples", "w")
for i in range(1, 6):
    launch(f"old{i}", 2 * i)
    launch(f"new{i}", 2 * i + 1)
    launch(f"slow{i}", 2 * i + 1, 1.5)
launch("lost", 12, failed=1)
launch("none", 13, failed=99)
launch("part", 14, measured=2)
PYTHON
python3 make.py "$data/small.h5.journal"

# Nothing has changed, so there is no alarm, and all 6 points are the SAME. Launches alternate and have the same
# environment.
compares 0 --old old{1..5}.h5 --new new{1..5}.h5 --margin 10
has out 'Comparison of step times: 5 launches before, 5 launches after' 'SAME' 'detectable' 'detectable' \
  'What differs between the environments' 'torch'
if grep -qE 'AMBIGUOUS +[0-9-]|took turns|ran before' out; then fail "launches that took turns: $(cat out)"; fi
is_narrow out

# Every point takes 1.5 times as long, the largest change is listed first, and the reverse comparison finds them faster.
compares 1 --old old{1..5}.h5 --new slow{1..5}.h5
has out 'Points that changed, largest change first' 'SLOWER'
compares 0 --old slow{1..5}.h5 --new old{1..5}.h5
has out 'FASTER'
compares 1 --old old{1..5}.h5 --new slow1.h5 --json
python3 - <<'PYTHON' || fail "one launch that is far beyond the spread of five: $(cat out)"
import json
tables = {table["key"]: table for table in json.load(open("out"))["tables"]}
counts = tables["comparison"]["rows"][0]
assert counts["points"] == 6 and counts["SLOWER"] == 6, counts
row = tables["compared_training"]["rows"][0]
assert row["test"] == "spread" and 40 < row["change"] < 60 and row["low"] < row["change"] < row["high"], row
assert row["launches before"] == 5 and row["launches after"] == 1
PYTHON

# Too few launches decide nothing, and a copy of a study is not another launch.
compares 4 old1.h5 slow1.h5
has out '6 points had fewer than 3 launches on both sides' 'All launches of one side ran before'
tr '\n' ' ' <out >one_line
has one_line 'No verdict. As measured: training takes 1.' ' times as long (median of ' 'The largest change: '
compares 4 old1.h5 slow1.h5 --json
python3 - <<'PYTHON' || fail "how much changed is not said: $(cat out)"
import json, statistics
tables = {table["key"]: table for table in json.load(open("out"))["tables"]}
rows = {row["what"]: row for row in tables["comparison"]["rows"]}
changes = {kind: [row["change"] for row in tables.get("compared_" + kind, {"rows": []})["rows"]]
           for kind in ("training", "collectives")}
for kind, values in changes.items():
    row = rows[kind]
    assert row["points"] == row["AMBIGUOUS"] == len(values) > 0, row
    assert abs(row["change least"] - min(values)) < 1e-6 and abs(row["change most"] - max(values)) < 1e-6, row
    assert 40 < min(values) <= row["change median"] <= max(values) < 60, row
assert rows["all points"]["points"] == 6 and any("No verdict. As measured: " in note for note in tables["comparison"]["notes"])
PYTHON
cp slow1.h5.journal copy.h5.journal && cp slow1.h5.samples copy.h5.samples
compares 4 --old old1.h5 --new slow1.h5 copy.h5
has out '1 launch after'

# A point that no longer gives a time is a failure, with its reason.
compares 1 --old old{1..5}.h5 --new lost.h5
has out 'failed: rank 1 died'

# Baselines are written, compared with, and extended. A reference that was written by hand decides alone and is kept.
compares 0 --write-baseline base.json old{1..5}.h5
has err '5 launches of Some CPU, 1 thread per rank'
compares 0 --baseline base.json new{1..5}.h5 --margin 10
compares 1 --baseline base.json slow{1..5}.h5
cp base.json again.json
compares 0 --write-baseline again.json old{1..5}.h5
cmp base.json again.json || fail "writing a baseline again changes it"
sed -i '0,/"step_s":\[[^]]*\]/s//&,"reference":{"value":0.1,"lower":null,"upper":100}/' base.json
has base.json '"upper":100'
compares 1 --baseline base.json slow1.h5 --table compared_training compared_collectives
has out 'reference' 'SAME'
compares 0 --write-baseline base.json new{1..5}.h5
has base.json '"upper":100'
# A launch that measured fewer points, or none, removes nothing from the baseline.
compares 0 --write-baseline base.json part.h5
has err '2 points of 1 launch of Some CPU, 1 thread per rank; 4 points more as before'
has base.json '"upper":100'
[[ $(grep -c '"step_s":' base.json) == 6 ]] || fail "a baseline that lost points: $(cat base.json)"
cp base.json before.json
refuses 'no point of these studies has a step time, so nothing is written to base.json' --write-baseline base.json none.h5
cmp base.json before.json || fail "a study without times changed the baseline"
refuses 'nothing is written to new.json' --write-baseline new.json none.h5
[[ ! -e new.json ]] || fail "an empty baseline: $(cat new.json)"

# slips TEXT EDIT: after this edit, a mistake in base.json is reported with the text instead of a SAME.
cat >edit.py <<'PYTHON'
import json, sys
baseline = json.load(open("base.json"))
points = next(iter(baseline["machines"].values()))["points"]
point = next(point for point in points.values() if "reference" in point)
exec(sys.argv[1], {"point": point, "reference": point["reference"]})
json.dump(baseline, open("bad.json", "w"))
PYTHON
slips() {
  python3 edit.py "$2"
  refuses "$1" --baseline bad.json old1.h5
  refuses "$1" --write-baseline bad.json old1.h5
  has err 'bad.json: machines.Some CPU, 1 thread per rank.points.'
}
slips ".reference: unknown key 'uper'; did you mean 'upper'?" 'reference["uper"] = reference.pop("upper")'
slips ".reference: expected 'lower', 'upper' or both" 'del reference["lower"], reference["upper"]'
slips '.reference: expected lower <= value <= upper' 'reference["lower"] = 200'
slips '.step_s: expected at most 100 launches, got 100000' 'point["step_s"] = [0.1] * 100000'

# The JUnit file for CI has one case per point, failures for points that are SLOWER, and errors for points that no
# longer have a time.
cat >junit.py <<'PYTHON'
import sys, xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot()
(suite,) = suites
cases = suite.findall("testcase")
counts = {kind: len(suite.findall("testcase/" + kind)) for kind in ("failure", "error", "skipped")}
assert suites.tag == "testsuites" and len({case.get("name") for case in cases}) == len(cases)
assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == [
    str(n) for n in (len(cases), counts["failure"], counts["error"], counts["skipped"])], suite.attrib
print(len(cases), *counts.values(), *(e.get("message") for e in suite.findall("testcase/*")))
PYTHON
junit() { python3 junit.py "$1" >counts || fail "$1: $(cat "$1")"; valid_junit "$1"; }
compares 1 --old old{1..5}.h5 --new slow{1..5}.h5 --junit ci.xml
junit ci.xml
[[ $(cat counts) == "6 6 0 0 SLOWER: "* ]] || fail "junit of slow launches: $(cat counts)"
has counts 'before' '%, 95 % interval +'
refuses 'ci.xml exists' --old old{1..5}.h5 --new slow{1..5}.h5 --junit ci.xml
compares 0 --old old{1..5}.h5 --new new{1..5}.h5 --junit ci.xml --overwrite
junit ci.xml
[[ $(cat counts) == "6 0 0 0" ]] || fail "junit of equal launches: $(cat counts)"
compares 1 old1.h5 lost.h5 --junit lost.xml
junit lost.xml
[[ $(cat counts) == "6 0 1 5 "*"no time any more: failed: rank 1 died"* ]] || fail "junit of a lost point: $(cat counts)"
refuses 'no/ci.xml' old1.h5 new1.h5 --junit no/ci.xml
refuses '--write-baseline excludes --junit' old1.h5 --write-baseline b.json --junit c.xml

refuses 'which studies are old, which new?' old1.h5
refuses 'old1.h5 is given both as old and as new' old1.h5 ./old1.h5
refuses 'nothing.h5: no such study' nothing.h5 old1.h5
refuses 'newer shardmark' old1.h5 "$data/newer.h5"
refuses 'no such baseline' --baseline none.json old1.h5
echo '[1, 2]' >bad.json
refuses 'bad.json is not a baseline' --baseline bad.json old1.h5
refuses 'bad.json is not a baseline' --write-baseline bad.json old1.h5
sed 's/"shardmark_baseline": 1/"shardmark_baseline": 2/' again.json >bad.json
refuses 'use a newer shardmark' --baseline bad.json old1.h5
sed 's/Some CPU/Other CPU/' again.json >bad.json
refuses 'it has: Other CPU, 1 thread per rank' --baseline bad.json old1.h5
sed '0,/"step_s":\[[^]]*\]/s//"step_s":[0.1,-1]/' again.json >bad.json
refuses 'expected seconds, more than 0' --baseline bad.json old1.h5
refuses '--margin' old1.h5 new1.h5 --margin nonsense
refuses '--margin: expected a number from 0 to 100' old1.h5 new1.h5 --margin nan
refuses '--write-baseline requires studies' --write-baseline b.json
refuses '/dev/full: cannot be read: it is a device' --write-baseline /dev/full old1.h5
ln -s loop.h5 loop.h5
refuses 'loop.h5: Too many levels of symbolic links' old1.h5 loop.h5
refuses 'loop.h5: Too many levels of symbolic links' --write-baseline loop.h5 old1.h5
mkfifo pipe.json
refuses 'pipe.json: cannot be read: it is a pipe' --baseline pipe.json old1.h5
echo 'compare: verdicts, baselines and refusals are as they should be'
