#!/usr/bin/env bash
# QUICK
# shardmark report with the journals in tests/data/studies (schema 1.0, and one of a newer schema): every format, and
# several studies at once. Bad input gives one line and exit status 2.
set -euo pipefail

reference=$PWD/results/reference
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

# The first screen fits one screen and is not wider than asked for.
"$shardmark" report small.h5 >first
has first 'Training, on the most ranks of each setting' 'fastest' 'peak memory' 'Collectives, by their largest and smallest message' \
  'all_reduce' 'Tables, each with --table NAME' 'scaling_laws'
[[ -z $(awk 'length > 100' first) ]] || fail "the first screen is wider than 100 columns: $(awk 'length > 100' first)"
[[ $(wc -l <first) -le 60 ]] || fail "the first screen has $(wc -l <first) lines"
"$shardmark" report "$reference"/h100-*.h5 >first
has first 'fsdp(shard=gradients)'
tr '\n' ' ' <first >one_line    # line breaks depend on the path of this repository
has one_line 'NVIDIA H100 80GB HBM3'
[[ $(wc -l <first) -le 60 ]] || fail "the first screen of two studies has $(wc -l <first) lines"
"$shardmark" report small.h5 --table memory >memory
has memory 'Memory'
! grep -q '^\* ' memory || fail "a table comes with notes that nobody asked for"
grep -q '^\* ' <<<"$("$shardmark" report small.h5 --table memory --explain)" || fail "--explain explains nothing"
refuses '--all' small.h5 --all --table memory
refuses '--explain' small.h5 --csv tables --explain
refuses '--price' small.h5 --plots plots --price 2
refuses '--explain' small.h5 --html page.html --explain
"$shardmark" report small.h5 --explain >explained
has explained '* vs fastest: ' 'Tables, each with --table NAME'
[[ $(wc -l <explained) -le 90 ]] || fail "--explain alone prints more than the first screen: $(wc -l <explained) lines"

"$shardmark" report small.h5 --all >text
has text 'Study' 'Strategies' 'Strong scaling' 'Scaling laws' 'falls below 80 %' 'Memory' 'Communication of a step' 'Collective all_reduce on 2 ranks' \
  'needs 16 ranks, the world has 8'
is_narrow text

# Metrics for Prometheus are read by its own parser, if it is installed. All series are distinct.
"$shardmark" report small.h5 "$reference"/h100-*.h5 --openmetrics metrics.prom
python3=$reference/../../.venv/bin/python3
[[ -x $python3 ]] || python3=python3
"$python3" - <<'PYTHON' || fail "metrics.prom: $(cat metrics.prom)"
import re
lines = open("metrics.prom").read().splitlines()
assert lines[-1] == "# EOF", lines[-1]
series, kind = {}, {}
for line in lines[:-1]:
    head = re.fullmatch(r"# (TYPE|UNIT|HELP) (\S+) (.+)", line)
    if head:
        kind.setdefault(head[2], {})[head[1]] = head[3]
        assert head[1] != "UNIT" or head[2].endswith("_" + head[3]), line
        continue
    name, labels, value = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)', line).groups()
    assert kind[name]["TYPE"] == "gauge" and float(value) >= 0 and (name, labels) not in series, line
    series[name, labels] = float(value)
assert {"shardmark_step_seconds", "shardmark_tokens_per_second", "shardmark_points"} <= set(kind), kind
assert any(name == "shardmark_bus_bandwidth_bytes_per_second" and 'operation="all_reduce"' in labels for name, labels in series)
try:
    from prometheus_client.openmetrics import parser
except ImportError:
    print("prometheus_client is not here: its parser was not asked")
else:
    families = list(parser.text_string_to_metric_families(open("metrics.prom").read()))
    assert sum(len(family.samples) for family in families) == len(series)
PYTHON
refuses 'metrics.prom exists' small.h5 --openmetrics metrics.prom
"$shardmark" report small.h5 --openmetrics metrics.prom --overwrite
! grep -q H100 metrics.prom || fail "metrics of an earlier report stayed"
refuses '--openmetrics' small.h5 --openmetrics m.prom --table memory
refuses '--failures and --link change tables' small.h5 --openmetrics m.prom --price 2

"$shardmark" report small.h5 --markdown --table scaling_laws >markdown
has markdown '## Scaling laws' '| Amdahl | 10.00 |'

"$shardmark" report small.h5 --csv tables >files
[[ $(sort files) == $(ls tables/*.csv | sort) ]] || fail "--csv named other files than it wrote: $(cat files)"
has tables/scaling_laws.csv 's or alpha value (%)'
[[ $(wc -l <tables/scaling.strong.csv) == 5 ]] || fail "scaling.strong.csv is not a header and four rows"
"$shardmark" report small.h5 --csv - --table scaling.strong | cmp - tables/scaling.strong.csv || fail "--csv - differs from --csv DIR"

# Studies from GPUs stay readable.
"$shardmark" report "$reference"/h100-*.h5 --all >gpu
has gpu 'NVIDIA H100 80GB HBM3' 'gpt2_xl' 'fsdp(shard=gradients)' 'energy'

# ddp on 1 rank has 2,560 tokens/s, so 10^6 tokens take 391 s. That is 0.1085 hours, at a price of 2 per hour.
"$shardmark" report small.h5 --price 2 --table strategies >costs
has costs 'Costs are at 2.000 per GPU-hour.' '0.2170'
# The cost of failures for measured points. Flags without effect are refused.
"$shardmark" report small.h5 --failures restart=10m checkpoint_write=60s rate=0.01 watts=300 --price 2 --table goodput >goodput
has goodput 'Goodput: what failures leave' 'Failures: 0.0100 for each node and hour; 10 min to restart.' 'cost' 'kWh'
refuses 'needs restart=TIME' small.h5 --failures watts=300
refuses 'do not say how long a checkpoint takes' small.h5 --failures restart=10m
refuses '--price and --failures make tables' small.h5 --failures restart=10m checkpoint_write=60s --plots plots
refuses '--price, --failures and --link change tables' small.h5 --failures restart=10m checkpoint_write=60s --openmetrics m.prom
"$shardmark" report small.h5 --link mine=5us,12.5GB/s --table interconnects >links
has links 'mine' 'ndr400'

"$shardmark" report small.h5 --json >json
if can_use python3; then
  python3 - <<'PYTHON' || fail "the JSON document, or the CSV files, do not say what they should"
import csv, json
tables = {table["key"]: table for table in json.load(open("json"))["tables"]}
fit = tables["scaling_laws"]["rows"][0]
assert fit["law"] == "Amdahl" and abs(fit["s or alpha value"] - 10) < 1e-6, fit
for key, table in tables.items():
    with open(f"tables/{key}.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == len(table["rows"]) + 1 and all(len(row) == len(rows[0]) for row in rows), key
PYTHON
fi

if can_use rsvg-convert; then
  "$shardmark" report small.h5 --plots plots >files
  [[ $(sort files) == $(ls plots/* | sort) ]] || fail "--plots named other files than it wrote: $(cat files)"
  has files plots/strong_scaling.svg plots/strong_scaling.png plots/strong_scaling.pdf
fi

"$shardmark" report small.h5 --html page.html >files
[[ $(cat files) == page.html ]] || fail "--html named another file than it wrote: $(cat files)"
refuses "page.html exists" small.h5 --html page.html
"$shardmark" report small.h5 --html page.html --overwrite --link 'mine=5us,25GB/s' --price 2 >files
has page.html 'mine: 2 ranks: ' 'Costs' '<!doctype html>' '<title>shardmark: small</title>' 'Strong scaling' 'needs 16 ranks, the world has 8'

# The same study given twice counts once. A copy is another study, whose points are further repeats.
"$shardmark" report --all small.h5 ./small.h5 >twice && cmp text twice || fail "a study named twice counts twice"
cp small.h5.journal copy.h5.journal && cp small.h5.samples copy.h5.samples
"$shardmark" report --all small.h5 copy.h5 >both
has both 'small.h5' 'copy.h5' 'repeats 2'

refuses 'nothing.h5' nothing.h5
echo 'not a study' >other.h5
refuses 'other.h5' other.h5
refuses 'newer shardmark' newer.h5
refuses '--table nonsense' small.h5 --table nonsense
refuses 'no such table here; there are: ' small.h5 --table nonsense
refuses 'scaling (weak, strong, karp_flatt, speedup, efficiency)' small.h5 --table nonsense
"$shardmark" report small.h5 --table amdahl | cmp - <("$shardmark" report small.h5 --table scaling_laws) ||
  fail "--table amdahl is not the scaling laws"
# A name with parts is all of them, in their order; a part has a name of its own.
"$shardmark" report small.h5 --table scaling >scaling
cmp scaling <("$shardmark" report small.h5 --table scaling.strong scaling.limits) || fail "--table scaling is not its parts"
has scaling 'Strong scaling' 'falls below 80 %'
# Names of before say where their answer is, and nothing is printed or written.
refuses '--table weak_scaling: this is a part of the table scaling now; take --table scaling.weak' small.h5 --table memory weak_scaling
refuses '--table costs: this is a part of the table strategies now; take --table strategies' small.h5 --table costs --price 2
refuses '--table not_ok: this is a part of the table problems now; take --table problems' small.h5 --table not_ok --csv old
refuses 'take --table collectives.all_reduce_2' small.h5 --table collective_all_reduce_2
[[ ! -e old ]] || fail "a refused name made a folder: $(ls old)"
"$shardmark" report small.h5 --table all_reduce >all_reduce
has all_reduce 'Collective all_reduce on 2 ranks'
refuses 'other.h5' small.h5 --csv other.h5/tables
refuses 'other.h5' small.h5 --html other.h5/page.html
refuses '--html' small.h5 --html page.html --json
refuses 'other.h5' small.h5 --plots other.h5/plots
refuses '--csv' small.h5 --csv tables --json
for flag in --csv --plots; do # in a folder that accepts no new files
  refuses "$flag: the directory /sys/none cannot be made (" small.h5 "$flag" /sys/none
  ! grep -q 'No such file' err || fail "$flag: not the true reason: $(cat err)"
  refuses "cannot be written (" small.h5 "$flag" /sys
  ! grep -q 'No such file' err || fail "$flag: not the true reason: $(cat err)"
done
refuses 'studies' --json
refuses '--price' small.h5 --price 0
refuses '--price: expected a number above 0' small.h5 --price nan
refuses '--link: '"'nonsense' is not a link" small.h5 --link nonsense
refuses "there is a link 'mine' already" small.h5 --link mine=5us,25GB/s --link mine=6us,12.5GB/s
refuses "there is a link 'ndr400' already" small.h5 --link ndr400
refuses 'studies: an empty value' ""
refuses '--html: an empty value' small.h5 --html ""
mkfifo pipe
refuses 'pipe: cannot be read: it is a pipe' pipe
refuses '/dev/zero: cannot be read: it is a device' /dev/zero
refuses 'no process reads this pipe' small.h5 --html pipe
refuses 'page' small.h5 --html $'no/page\e[31m'
grep -qF 'no/page\x1b[31m' err || fail "a name with control characters: $(cat -v err)"
echo 'report: every form and every refusal passed'
