#!/usr/bin/env bash
# QUICK
# shardmark import with the logs and tables of tests/data/import: import, then report, compare and predict, and points
# that must be kept apart. Bad input gives one line and exit status 2, and writes nothing.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"
cp "$data"/../import/* .

# imports ARGUMENT...: the import succeeds. Its warnings are in `err`.
imports() { "$shardmark" import "$@" >out 2>err || fail "import $*: $(cat out err)"; }
warned() { has err "$@"; }
quiet() { [[ ! -s err ]] || fail "warnings that nobody expects: $(cat err)"; }

# The first command that a user types, and its output.
imports nccl-2.13-two-nodes.log --operation all_reduce --device "NVIDIA H100 80GB HBM3" --nodes 2 -o theirs.h5
quiet
has out 'theirs.h5: 10 points of 1 launch, imported from nccl-2.13-two-nodes.log (nccl-tests); look at it: shardmark report theirs.h5'
"$shardmark" report theirs.h5 >report
has report 'imported from nccl-2.13-two-nodes.log (nccl-tests)' '16 ranks of 2 nodes (NVIDIA H100 80GB HBM3) over nccl' 'all_reduce'
"$shardmark" report theirs.h5 --table collectives.all_reduce_16 >report
has report '8,589,934,592' '81,958' '197'
"$shardmark" report theirs.h5 --raw --json >json
has json '"hash"' '"flags"' '"times"' 'mean over iterations'

# Two files are two launches, and two imported studies are compared launch by launch.
imports nccl-2.18-rep1.log nccl-2.18-rep2.log --nodes 1 -o both.h5
quiet
has out '32 points of 2 launches'
imports nccl-2.18-rep1.log --nodes 1 -o one.h5
imports nccl-2.18-rep2.log --nodes 1 -o two.h5
"$shardmark" compare --old one.h5 --new two.h5 >out || [[ $? == 4 ]] || fail "compare: $(cat out)"
has out 'Comparison of step times: 1 launch before, 1 launch after' 'fewer than 3 launches'
! grep -q 'ran before those of the other' out || fail "nobody said when these launches began: $(cat out)"
"$shardmark" compare --old both.h5 --new one.h5 >out || [[ $? == 4 ]] || fail "compare: $(cat out)"
has out '2 launches before, 1 launch after'

# The complete part of a truncated log is imported, damaged lines are reported by number, and wrong elements are an
# outcome.
imports nccl-2.18-cut.log --nodes 1 -o cut.h5
warned 'nccl-2.18-cut.log:20: ends inside a table: 10 results of it are imported'
imports nccl-2.18-damaged.log --nodes 1 -o damaged.h5
warned 'nccl-2.18-damaged.log:16: left out' 'nccl-2.18-damaged.log:20: left out'
"$shardmark" report damaged.h5 >report
has report '1 wrong' '17 elements differed'

# Other machines, links and programs are never merged. Each has its own rows.
imports nccl-2.18-rep1.log --link ndr400 --nodes 1 -o link.h5
"$shardmark" report one.h5 link.h5 --json >json
python3 - <<'PYTHON' || fail "points over different links: $(head -c 3000 json)"
import json
tables = {table["key"]: table for table in json.load(open("json"))["tables"]}
rows = tables["collectives.all_reduce_2"]["rows"]
assert {row["transport"] for row in rows} == {"nccl", "nccl(link=ndr400)"} and len(rows) == 16, rows
PYTHON
imports osu-5.8.txt --ranks 2 --nodes 2 --device "AMD EPYC" --transport mpi -o osu.h5
imports imb-2021.6.txt --device "AMD EPYC" --transport mpi --nodes 4 -o imb.h5
imports nccl-2.19.json -o json.h5
"$shardmark" report one.h5 osu.h5 imb.h5 theirs.h5 json.h5 small.h5 --all >report
has report 'AMD EPYC' 'NVIDIA GeForce RTX 5090' 'These studies come from different machines'
"$shardmark" report one.h5 osu.h5 small.h5 --json >json
python3 - <<'PYTHON' || fail "points of different machines: $(head -c 3000 json)"
import json
tables = {table["key"]: table for table in json.load(open("json"))["tables"]}
machines = {row["machine"] for row in tables["collectives.all_reduce_2"]["rows"]}
assert len(machines) == 3, machines
PYTHON

# A table gives scaling and its laws. Without block times nothing is predicted, and the command says so.
imports training.csv --device "NVIDIA H100 80GB HBM3" --transport nccl -o training.h5
quiet
"$shardmark" report training.h5 >report
has report 'gpt2_xl' 'fsdp' 'tokens/s'
"$shardmark" report training.h5 --all >report
has report 'Strong scaling' 'Scaling laws' 'Karp-Flatt'
command=predict refuses 'no times of blocks, as after an import' training.h5
command=predict refuses 'no training point' theirs.h5
imports training.yaml --device "NVIDIA H100 80GB HBM3" --transport nccl -o yaml.h5
warned "kept as written" "our-8b"
"$shardmark" report yaml.h5 --all >report
has report 'our-8b' 'megatron'
imports mlperf-5.1-amd.txt --ranks 8 --nodes 1 --device "AMD Instinct MI350X" --transport rccl -o mlperf.h5
quiet
"$shardmark" report mlperf.h5 >report
has report 'llama31_8b' 'AMD Instinct MI350X'

# These are refused, and nothing is written.
rm -f no.h5
refuses 'give --operation' nccl-2.10-all-reduce.log -o no.h5
refuses 'busbw 0.05 contradicts' nccl-2.10-all-reduce.log --operation all_gather -o no.h5
refuses 'a study holds blocking collectives' osu-latency.txt --ranks 2 -o no.h5
refuses 'give --ranks' osu-5.8.txt -o no.h5
refuses 'give --device' osu-5.8.txt --ranks 2 -o no.h5
refuses 'give --transport' training.csv --device cpu -o no.h5
refuses 'or the name of the processor; nor what moved bytes' training.csv -o no.h5
refuses 'nothing that import knows' README.md -o no.h5
refuses 'no such file' missing.log -o no.h5
refuses 'one.h5 exists; choose another output' nccl-2.18-rep1.log --nodes 1 -o one.h5
refuses 'cannot write' nccl-2.18-rep1.log --nodes 1 -o missing/folder/no.h5
[[ ! -e no.h5 && ! -e no.h5.journal ]] || fail "a refused import left a file"

# Names that people give their models are kept, and every command reads them.
imports names.csv --device "NVIDIA H100 80GB HBM3" --transport nccl -o names.h5
warned 'kept as written' 'GPT-3 (175B)' 'Megatron TP8, PP2'
"$shardmark" report names.h5 --all >report
has report 'GPT-3 (175B)' 'DDP (torch)' 'Llama 3.1 8B' 'bert-large: phase 2' 'llama:8b'
"$shardmark" report names.h5 --html names.html >out
has names.html 'GPT-3 (175B)'
"$shardmark" report names.h5 --raw --json >names.json
python3 - <<'PYTHON' || fail "names in JSON: $(head -c 2000 names.json)"
import json
text = open("names.json").read()
assert '"GPT-3 (175B)"' in text and '"a \\"quoted\\" name"' in text
PYTHON
sed 's/,1\.\([0-9]\),a/,1.\15,b/' names.csv >names2.csv
imports names2.csv --device "NVIDIA H100 80GB HBM3" --transport nccl -o names2.h5
"$shardmark" compare --old names.h5 --new names2.h5 >out || [[ $? == 4 ]] || fail "compare: $(cat out)"
has out 'Llama 3.1 8B'
command=predict refuses 'no times of blocks, as after an import' names.h5
printf 'ranks,model,strategy,batch_size,step_s\n8,gpt2_xl(layers=48,ddp,4,1\n' >slip.csv
refuses "slip.csv:2: model: 'gpt2_xl(layers=48'" slip.csv --device x --transport nccl -o no.h5

# Tables as spreadsheets, containers and other programs write them.
imports excel.csv --device x --transport nccl -o excel.h5
has out '2 points of 1 launch'
imports table.jsonl --device x --transport nccl -o lines.h5
has out '2 points of 1 launch'
imports nccl-kubectl.log -o kubectl.h5
has out '2 points of 1 launch'
imports osu-compose.txt --ranks 2 --device x --transport mpi -o compose.h5
has out '2 points of 1 launch'

# Operations that were started in another way count as another transport, and compare names it.
sed 's/agg iters: 1/agg iters: 4/' nccl-2.18-rep1.log >aggregated.log
imports aggregated.log --nodes 1 -o aggregated.h5
refuses 'times of another kind' nccl-2.18-rep2.log aggregated.log --nodes 1 -o no.h5
"$shardmark" report one.h5 aggregated.h5 --all >report
has report 'nccl(aggregated=4)'
status=0
"$shardmark" compare --old one.h5 --new aggregated.h5 >out 2>err || status=$?
[[ $status != 0 ]] || fail "two kinds of times are compared: $(cat out)"
grep -qF 'aggregated' out err || fail "compare does not say what differs: $(cat out err)"

# Flags without a meaningful value, and flags that contradict a file, are refused.
refuses '--device' nccl-2.18-rep1.log --nodes 1 --device ' ' -o no.h5
refuses '--link' nccl-2.18-rep1.log --nodes 1 --link $'foo bar\n' -o no.h5
refuses '--transport' training.csv --device x --transport 'nccl 2.2' -o no.h5
refuses 'not 8 as --ranks says' training.csv --device x --transport nccl --ranks 8 -o no.h5
refuses 'it is training, not all_gather as --operation says' training.csv --device x --transport nccl --operation all_gather -o no.h5
refuses 'give --nodes 1 if they share that GPU, or --nodes 2' nccl-2.18-rep1.log -o no.h5

# The name is taken by the remains of a killed import, and the disk is full: no file is promised that does not exist.
: >left.h5.journal
refuses 'left.h5.journal is there' names.csv --device x --transport nccl -o left.h5
status=0
(ulimit -f 64; "$shardmark" import names.csv --device x --transport nccl -o full.h5) >out 2>err || status=$?
[[ $status == 3 ]] || fail "a full disk: exit status $status instead of 3: $(cat out err)"
has err 'cannot write full.h5' 'make room'
! grep -q journal err || fail "a journal is promised: $(cat err)"
[[ -z $(ls full.h5* 2>/dev/null) ]] || fail "a failed import left $(ls full.h5*)"
[[ ! -e no.h5 && ! -e no.h5.journal ]] || fail "a refused import left a file"
