#!/usr/bin/env bash
# QUICK
# shardmark plan and shardmark list: the text of a plan (compared with a golden file), JSON, overrides, exit statuses,
# and errors of one line. This command updates the golden file after an intended change:
#   build/shardmark plan tests/data/plan.yaml -n 2 --all >tests/data/plan.txt
set -euo pipefail
cd "$(dirname "$0")/../.."
shardmark=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

# refused WHAT TEXT ARGUMENTS...: exit status 2, nothing on stdout, and one line on stderr that contains the text.
refused() {
  local what=$1 text=$2 status=0
  shift 2
  "$shardmark" "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [[ $status == 2 ]] || fail "$what: exit status $status instead of 2"
  [[ ! -s $dir/out ]] || fail "$what: wrote to the standard output"
  [[ $(wc -l <"$dir/err") == 1 ]] || fail "$what: not one line: $(cat "$dir/err")"
  grep -qF -- "$text" "$dir/err" || fail "$what: '$text' is not in: $(cat "$dir/err")"
}

# says TEXT ARGUMENTS...: exit status 0, and the output contains the text.
says() {
  local text=$1
  shift
  "$shardmark" "$@" >"$dir/out" || fail "$*: exit status $?"
  grep -qF -- "$text" "$dir/out" || fail "$*: '$text' is not in: $(cat "$dir/out")"
}

"$shardmark" plan tests/data/plan.yaml -n 2 --all >"$dir/plan.txt"
diff tests/data/plan.txt "$dir/plan.txt" || fail "the text of the plan changed"

# The first screen fits one screen: it has a row for each strategy of a setting, and for each collective.
for suite in suites/*.yaml; do
  "$shardmark" plan "$suite" >"$dir/screen" 2>"$dir/err" || fail "plan $suite: $(cat "$dir/err")"
  [[ $(wc -l <"$dir/screen") -le 60 ]] || fail "plan $suite: $(wc -l <"$dir/screen") lines"
  ! awk 'length > 100' "$dir/screen" | grep . || fail "plan $suite: lines of more than 100 columns"
done
says "  fsdp(shard=gradients) " plan suites/quick.yaml

# Every row of the first screen is a row of the table `training`: that of the most ranks. On one rank fsdp shards
# nothing, so it needs more memory than ddp there, and less on eight ranks.
overview_is_of_training() {
  "$shardmark" plan "$@" >"$dir/screen" 2>"$dir/err" || fail "plan $*: $(cat "$dir/err")"
  "$shardmark" plan "$@" --json >"$dir/plan.json" 2>"$dir/err" || fail "plan $* --json: $(cat "$dir/err")"
  python3 - "$dir/screen" "$dir/plan.json" <<'PYTHON' || fail "plan $*: a row of the first screen is none of the table training"
import json, re, sys
tables = {table["key"]: table["rows"] for table in json.load(open(sys.argv[2]))["tables"]}
number = lambda text: 0.0 if text in ("-", "") else float(text.replace(",", ""))
near = lambda a, b: abs(a - b) <= 1e-3 * max(abs(a), abs(b))
columns = ("memory per rank total", "per rank and step compute", "per rank and step traffic", "per rank and step operations")
count, lines, inside = 0, open(sys.argv[1]).read().split("\n"), False
for line in lines:
    if not line.strip(): inside = False
    if line.startswith("Training, a row for each strategy"): inside = True
    cells = re.split("  +", line.strip())
    if not inside or not line.startswith("  ") or len(cells) < 6 or not re.fullmatch("[0-9,]+", cells[1]): continue
    if cells[0] == "auto": continue  # it is chosen at run time
    strategy, ranks, shown = cells[0], number(cells[1]), [number(cell) for cell in cells[2:6]]
    rows = [row for row in tables["training"] if row["strategy"].split("(")[0] == strategy.split("(")[0]]
    same = [row for row in rows if row["ranks"] == ranks and all(near(row[c] or 0, s) for c, s in zip(columns, shown))]
    assert same, (line, [(row["ranks"], [row[c] for c in columns]) for row in rows])
    count += 1
    more = re.search(r" ([0-9]+): ([0-9.,]+)$", line)  # a smaller number of ranks that needs more memory
    if more:
        assert number(more[1]) < ranks and number(more[2]) > shown[0], line
        assert any(row["ranks"] == number(more[1]) and near(row[columns[0]], number(more[2])) for row in rows), line
assert count > 0
PYTHON
}
overview_is_of_training gpt2 -n 8
says " 1: 6,987" plan gpt2 -n 8
for suite in quick memory layouts scaling; do overview_is_of_training $suite; done

# The points of suites for GPUs of a certain size fit, including activations.
for suite in llama gpu-llama; do
  "$shardmark" plan $suite --json | python3 -c 'import json, sys
plan = json.load(sys.stdin)
sys.exit(plan["num_impossible"] > 0 or plan["most_bytes"] > 76 << 30)' || fail "$suite does not fit 80 GB"
done

"$shardmark" plan tests/data/plan.yaml -n 2 --json >"$dir/plan.json"
python3 - "$dir/plan.json" <<'PYTHON' || fail "the JSON of the plan"
import json, sys
plan = json.load(open(sys.argv[1]))
rows = {}
for table in plan["tables"]:
    rows.setdefault(table["key"], []).extend(table["rows"])
assert plan["suite"] == "golden" and plan["world_ranks"] == 2, plan
assert sum(1 for row in rows["training"]) == 15, len(rows["training"])
assert plan["num_impossible"] == 2 * sum(row["points"] for row in rows["impossible"]), plan
assert plan["num_points"] == 2 * (15 + sum(row["sizes"] for row in rows["collectives"])) + plan["num_impossible"], plan
PYTHON

says "golden on 8 ranks" plan tests/data/plan.yaml                      # no -n: as large as the largest point
says "golden on 3 ranks: 29 points, 1 of them impossible" plan tests/data/plan.yaml --ranks 3 --repeats 1 --strategy ddp --model mlp --batch-size 2
says "the state of a rank needs 1.85 GiB, a rank has 1.00 GiB" plan suites/gpt2.yaml -n 1 --memory 1GiB --table impossible
says "cannot run: 20 points, such as ddp, batch 4, 1 rank: the state of a rank needs 1.85 GiB" plan suites/gpt2.yaml -n 1 --memory 1GiB
says "Note: a memory limit of 512 MiB is too small for GPUs" plan tests/data/plan.yaml -n 2 --memory 512MiB
says "Note: a memory limit of 64.0 MiB is too small for GPUs" plan suites/memory.yaml -n 2
[[ $("$shardmark" plan suites/gpu-memory.yaml -n 2) != *"too small for GPUs"* ]] || fail "20 GiB are enough"
says "suites/quick.yaml" list
says "fsdp" list

# A step takes nothing of a suite, and a suite nothing of a step.
says "backward of h.0" plan --step ddp --model "gpt2(layers=1)" -n 2 --set accumulation=2
says "executed by rank 1 of 2" plan --step zero3 --model "gpt2(layers=1)" -n 2 --rank 1
says "forward again of h.0" plan --step fsdp --model "gpt2(layers=1)" -n 2 --set checkpointing=1
says "forward again of h.0" plan --step fsdp --model "gpt2(layers=1)" -n 2 --set checkpointing=full
refused "a word that is none of the axis" "--set: checkpointing: expected" plan --step fsdp --model "gpt2(layers=1)" -n 2 --set checkpointing=all
says "sum the squares of the gradients" plan --step ddp --model mlp -n 2 --set clip_norm=1
refused "a rank too many" "--rank 2: expected a rank from 0 to 1, of 2 ranks (-n)" plan --step ddp -n 2 --rank 2
for flag in --json --all --explain "--csv $dir/csv" --markdown "--table training" "--memory 1GiB" "--repeats 2"; do
  # shellcheck disable=SC2086
  refused "a step with $flag" "--step excludes ${flag%% *}" plan --step ddp -n 2 $flag
done
refused "a step of a suite" "suite excludes --step" plan suites/quick.yaml --step ddp
refused "a step of two models" "--model: a step has one value, got mlp, gpt2" plan --step ddp --model mlp gpt2
refused "a rank of no step" "--rank requires --step" plan suites/quick.yaml --rank 1

# Missing data are reported by plan, before a run.
printf 'training: {model: {gpt2: {sequence: 32}}, data: {text: {files: "none/*.txt"}}, strategy: [ddp, zero3], batch_size: 2}\n' >"$dir/none.yaml"
"$shardmark" plan "$dir/none.yaml" >"$dir/out" 2>"$dir/err" || fail "plan of data that are not there: $(cat "$dir/err")"
[[ $(wc -l <"$dir/err") == 1 ]] && grep -qF "no file matches 'none/*.txt' from $PWD or $dir; a run here would be refused" "$dir/err" ||
  fail "data that are not there: $(cat "$dir/err")"

# So are tokens that were cut, and documents without the token that they begin with.
python3 - "$dir" <<'P'
import struct, sys
header = struct.pack("<256i", 20240520, 1, 4000, *[0] * 253)
open(sys.argv[1] + "/cut.bin", "wb").write(header + bytes(1000))
open(sys.argv[1] + "/whole.bin", "wb").write(header + bytes(8000))
P
for data in "cut.bin" "whole.bin, documents: packed, begin: 9"; do
  printf 'training: {model: {gpt2: {sequence: 32}}, data: {tokens: {files: %s}}, strategy: ddp, batch_size: 2}\n' "$data" >"$dir/tokens.yaml"
  "$shardmark" plan "$dir/tokens.yaml" >"$dir/out" 2>"$dir/err" || fail "plan of tokens in $data: $(cat "$dir/err")"
  [[ $(wc -l <"$dir/err") == 1 ]] && grep -qF "${data%%,*}" "$dir/err" && grep -qF "; a run here would be refused" "$dir/err" ||
    fail "tokens in $data: $(cat "$dir/err")"
done

# A step that would take minutes to plan is refused, and the error says which values work. run and train use the same
# check.
for pipeline in 1 2; do
  printf 'ranks: 2\ntraining: {model: {gpt2: {layers: 2, width: 8, heads: 2, sequence: 8, vocabulary: 16}}, strategy: ddp, batch_size: 1, pipeline: %s, accumulation: 65536}\n' \
    $pipeline >"$dir/long.yaml"
  says "at most 100000 work; take accumulation 25000 or less" plan "$dir/long.yaml"
done
refused "a long step" "take accumulation" plan --step ddp --model "gpt2(layers=14)" -n 2 --set pipeline=2 "pipeline_schedule=interleaved(chunks=2)" accumulation=65536
printf 'ranks: 4096\ntraining: {model: {gpt2: {layers: 4096, width: 8, heads: 2, sequence: 8, vocabulary: 16}}, strategy: ddp, batch_size: 1, pipeline: 64, accumulation: 64}\n' >"$dir/long.yaml"
says "take accumulation 24 or less" plan "$dir/long.yaml"

# Values that are not numbers are reported. Errors about a mixture of experts begin with the name of that model.
for value in nan inf -inf; do
  printf 'training: {model: {moe: {top_k: %s}}, strategy: ddp, batch_size: 1}\n' $value >"$dir/none.yaml"
  refused "$value" "option 'top_k' of model moe is $value; accepted: an integer" plan "$dir/none.yaml"
done
refused "a mixture's width" "moe: width 17 is not a multiple of heads 4" plan --step ddp --model "moe(width=17, heads=4)"

refused "no suite" "which suite? give one, or --step STRATEGY" plan
refused "missing file" "nowhere.yaml: no such suite here, in suites" plan nowhere.yaml
printf 'training:\n  - model: mlp\n    stratgy: ddp\n    batch_size: 4\n' >"$dir/typo.yaml"
refused "unknown key" "typo.yaml:3:5: unknown key 'stratgy' in training; did you mean 'strategy'?" plan "$dir/typo.yaml"
printf 'training: [\n' >"$dir/broken.yaml"
refused "no YAML" "broken.yaml:2:1: not valid YAML" plan "$dir/broken.yaml"
refused "a folder" "tests: cannot be read: it is a folder" plan tests
printf '\x89HDF\r\n' >"$dir/study.yaml"
refused "a study as suite" "not UTF-8" plan "$dir/study.yaml"
refused "wrong override" "--strategy: unknown strategy 'dpp'; did you mean 'ddp'?" plan tests/data/plan.yaml --strategy dpp
refused "override without use" "has no training block" plan suites/collectives.yaml --model mlp

mkdir "$dir/suites" && cp "$dir/typo.yaml" "$dir/suites"
(cd "$dir" && "$shardmark" list) >"$dir/out"
grep -q 'typo.yaml *damaged: .*unknown key' "$dir/out" || fail "list hides a damaged suite"

# A rule that matches no point is reported with its position, and plan continues.
cat >"$dir/rule.yaml" <<'YAML'
training: {model: mlp, strategy: ddp, batch_size: [1, 2]}
exclude:
  - {batch_size: 2}
  - {strategy: zero3}
YAML
"$shardmark" plan "$dir/rule.yaml" >"$dir/out" 2>"$dir/err" || fail "a rule without use ended the plan"
[[ $(cat "$dir/err") == "shardmark: warning: $dir/rule.yaml:4:5: this rule of exclude names no point of the suite" ]] ||
  fail "a rule without use: $(cat "$dir/err")"

# Control characters for terminals are escaped in names from suites, files and flags.
mkdir -p "$dir/suites"
printf 'name: "tiny\\e[31m"\ndescription: "first\\nsecond \\a"\ntraining: {model: mlp, strategy: ddp, batch_size: 1}\n' >"$dir/suites/red.yaml"
"$shardmark" plan "$dir/suites/red.yaml" >"$dir/out"
grep -qF 'tiny\x1b[31m on 1 rank' "$dir/out" || fail "the name of a suite: $(cat -v "$dir/out")"
(cd "$dir" && "$shardmark" list) >"$dir/out"
grep -qF 'first\x0asecond \x07' "$dir/out" || fail "the description of a suite: $(cat -v "$dir/out")"
refused "a name with control characters" 'none\x1b[31m.yaml' plan "$dir/none"$'\x1b[31m.yaml'
if grep -q '[[:cntrl:]]' "$dir/out" "$dir/err"; then fail "control characters: $(cat -v "$dir/out" "$dir/err")"; fi
echo "plan: ok"
