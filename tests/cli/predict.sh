#!/usr/bin/env bash
# QUICK
# shardmark predict on a study of two nodes with a link of 1 Gbit/s (tests/data/studies/shaped.h5, measured by
# tests/cluster/shaped.sh with suites/predict.yaml): its tables, the errors for held-out points, and one line for bad
# input.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

"$shardmark" predict shaped.h5 --ranks 2..65536 --network ndr400 --node-link nvlink4 --ranks-per-node 8 --memory 80GiB --all >text
has text 'Highest predicted throughput' 'Predicted steps' 'Predicted against measured' '65,536' '8,192' 'ndr400' 'fsdp(group=8)'
is_narrow text
! grep -qiE '\b(nan|inf)\b' text || fail "no number: $(grep -iE '\b(nan|inf)\b' text)"

"$shardmark" predict shaped.h5 --ranks 8 --global-batch 64 --price 2 --layouts --csv tables >/dev/null
for table in best predictions held_out predicted_layouts; do [[ -s tables/$table.csv ]] || fail "no tables/$table.csv"; done
if can_use python3; then
  python3 - <<'PYTHON' || fail "held-out predictions"
import csv, statistics
rows = list(csv.DictReader(open("tables/held_out.csv", newline="")))
errors = [abs(float(r["predicted (ms)"]) / float(r["measured (ms)"]) - 1) for r in rows]
print(f"{len(errors)} held-out points, median error {100 * statistics.median(errors):.1f} %")
assert len(errors) >= 20 and statistics.median(errors) <= 0.10, errors
rows = list(csv.DictReader(open("tables/predictions.csv", newline="")))
assert rows and all(int(r["batch (per rank)"]) * 8 == 64 for r in rows), rows[:1]
PYTHON
fi

"$shardmark" predict shaped.h5 --ranks 8 --layouts --table layouts >layouts
has layouts 'Layouts: a shortlist to measure' 'fsdp' 'zero_bubble' 'the fastest of' 'a rule of thumb' 'Checked on published layouts' 'No growth of steps with nodes counts in'
"$shardmark" predict shaped.h5 --ranks 64 --ranks-per-node 8 --node-link nvlink4 --layouts --global-batch 64 --batch-size 1 --table layouts >layouts
has layouts 'sequence parallel' 'An extrapolation: tensor-parallel blocks were not measured'

# The shortlist is a suite that plan and launch accept, with each layout in three starts of the ranks.
"$shardmark" predict shaped.h5 --ranks 8 --layouts --global-batch 16 -o layouts.yaml >/dev/null 2>written
has written 'layouts.yaml written; measure it: shardmark launch layouts.yaml -n 8'
has layouts.yaml 'pipeline_schedule' 'accumulation' 'checkpointing: none' 'predicted'
"$shardmark" plan layouts.yaml -n 8 >planned
has planned '3 starts of the ranks' 'zero_bubble'
! grep -q impossible planned || fail "layouts that cannot run: $(cat planned)"
"$shardmark" launch layouts.yaml -n 8 --print >starts
[[ $(grep -c -e '--repetition' starts) -eq 3 ]] || fail "not three starts: $(cat starts)"
refuses 'exists; name another place' shaped.h5 --ranks 8 --layouts --global-batch 16 -o layouts.yaml
"$shardmark" predict shaped.h5 --ranks 8 --layouts --global-batch 16 -o layouts.yaml --overwrite >/dev/null 2>&1
refuses '--layouts' shaped.h5 --ranks 8 -o other.yaml
refuses 'nothing fits into' shaped.h5 --ranks 8 --layouts --memory 1MiB -o other.yaml
[[ ! -e other.yaml ]] || fail "a suite of nothing: $(cat other.yaml)"

# The cost of failures. The shares for Llama 3's failure rate are the same as in tests/unit/analysis_goodput_test.cpp.
failures=(--failures restart=10m checkpoint_write=60s)
"$shardmark" predict shaped.h5 --ranks 8..65536 --network ndr400 --node-link nvlink4 --ranks-per-node 8 "${failures[@]}" watts=700 --price 2 >goodput
has goodput 'Goodput: what failures leave' 'as Llama 3, 419 unplanned interruptions' '97.10' '85.37' '66.35' '10^9 tokens' 'kWh'
"$shardmark" predict shaped.h5 --ranks 8 "${failures[@]}" rate=rsc1 checkpoint_read=30s --table goodput --explain >goodput
has goodput 'as RSC-1, 6.50 failures' 'Daly, FGCS 22(3), 2006' 'Bougeret et al., SC 2011'
! grep -q 'kWh' goodput || fail "energy that nobody measured or gave: $(cat goodput)"
for text in rate=rsc1 checkpoint_write=60s checkpoint_read=30s watts=700; do
  refuses 'needs restart=TIME' shaped.h5 --failures "$text"
done
refuses 'do not say how long a checkpoint takes; give checkpoint_write=TIME' shaped.h5 --failures restart=10m
refuses '--failures rate: expected llama3, rsc1, rsc2, or a number above 0' shaped.h5 "${failures[@]}" rate=often
refuses "--failures: unknown key 'rates'; did you mean 'rate'? accepted: checkpoint_read, checkpoint_write, rate, restart, watts" shaped.h5 --failures rates=1
refuses 'watts changes tables' shaped.h5 "${failures[@]}" watts=700 --plots plots
refuses '--failures' shaped.h5 "${failures[@]}" --trace traces

if can_use rsvg-convert; then
  "$shardmark" predict shaped.h5 --ranks 2..64 "${failures[@]}" --plots plots >files
  [[ $(sort files) == $(ls plots/* | sort) ]] || fail "--plots named other files than it wrote: $(cat files)"
  has files plots/held_out.svg 'plots/predicted' 'plots/goodput'
fi
refuses '--plots' shaped.h5 --plots plots --json

# Simulated steps are written in the same form as measured ones. They are complete, and as long as the table says.
mkdir traces
"$shardmark" predict shaped.h5 --ranks 2 --strategy fsdp --batch-size 4 --trace traces >written
has written 'written to traces'
refuses 'exists; name another place' shaped.h5 --ranks 2 --strategy fsdp --batch-size 4 --trace traces
"$shardmark" predict shaped.h5 --ranks 2 --strategy fsdp --batch-size 4 --trace made/here >written
has written 'written to made/here'
"$shardmark" predict shaped.h5 --ranks 2,3 --global-batch 16 --strategy ddp --trace uneven_steps >written
has written 'written to uneven_steps' 'Left out: 3 ranks' 'the ranks do not divide the global batch'
refuses '--trace: the directory /sys/none cannot be made (' shaped.h5 --ranks 2 --trace /sys/none
if can_use python3; then
  "$shardmark" predict shaped.h5 --ranks 2 --strategy fsdp --batch-size 4 --csv of_traces >/dev/null
  python3 - <<'PYTHON' || fail "simulated steps"
import csv, glob, json
steps_ms = sorted(float(r["step (ms)"]) for r in csv.DictReader(open("of_traces/predictions.csv", newline="")))
traced_ms = []
for path in glob.glob("traces/*.json"):
    events = json.load(open(path))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X" and e["cat"] != "phase"]
    traced_ms.append(max(e["ts"] + e["dur"] for e in slices) / 1e3)
    assert any(e["name"].startswith("backward of ") for e in slices), path
    assert sum(e["ph"] == "b" for e in events) == sum(e["ph"] == "e" for e in events) > 0, path
assert len(traced_ms) == len(steps_ms) > 0, (traced_ms, steps_ms)
for traced, step in zip(sorted(traced_ms), steps_ms):
    assert abs(traced / step - 1) < 0.01, (traced, step)
PYTHON
fi

# If no layout is possible with the global batch, the error says which batch is.
refuses 'no layout of 64 ranks takes a global batch of 32; take --global-batch 256 (' shaped.h5 --ranks 64 --ranks-per-node 1 --network ndr400 \
  --layouts --global-batch 32 --batch-size 4 --strategy ddp

# Points that are left out have a reason on the screen. If no point is left, the reason is the error.
"$shardmark" predict shaped.h5 --ranks 2 --memory 1MiB >tight
has tight 'nothing fits into 1.00 MiB; the' 'Tables, each with --table NAME'
"$shardmark" predict shaped.h5 --ranks 2,3 --global-batch 16 >uneven
has uneven 'Left out: 3 ranks' 'the ranks do not divide the global batch'
refuses 'nothing can be predicted: 3 ranks (' shaped.h5 --ranks 3 --global-batch 16
refuses 'groups of 2 do not divide 3 ranks' shaped.h5 --ranks 3 --strategy 'fsdp(group=2)'

# A flag that another one leaves without meaning is refused.
for flag in --json '--csv x' --markdown --all --explain '--table best' '--memory 80GiB' '--price 2' --layouts; do
  for mode in '--trace D' '--plots D'; do
    # shellcheck disable=SC2086
    refuses 'excludes' shaped.h5 $mode $flag
  done
done
refuses 'excludes' shaped.h5 --trace D --plots D
for flag in shaped.h5 '--network ndr400' '--strategy ddp' '--trace D'; do
  # shellcheck disable=SC2086
  refuses 'excludes' $flag --model gpt2
done
refuses '--ranks: expected a whole number from 2 to 1048576' --model gpt2 --ranks 2..8
refuses '--ranks: expected a whole number from 1 to 1048576' shaped.h5 --ranks 0
refuses '--ranks: expected a whole number from 1 to 1048576' shaped.h5 --ranks 8..many
refuses 'ends before it begins' shaped.h5 --ranks 8..4
refuses 'is not a link' shaped.h5 --network nonsense
refuses 'unknown strategy' shaped.h5 --strategy nonsense
refuses '--memory' shaped.h5 --memory much
refuses '--global-batch' shaped.h5 --global-batch 8 --batch-size 4
refuses 'no times of blocks' small.h5
refuses 'name a study'
refuses 'missing.h5' missing.h5
echo 'predict: every table and every refusal passed'
