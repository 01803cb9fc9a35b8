#!/usr/bin/env bash
# shardmark predict on a study of two nodes with a link of 1 Gbit/s (tests/data/studies/shaped.h5, measured by
# tests/cluster/shaped.sh with suites/predict.yaml): its tables, how far held-out points are off, and one line for bad input.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

"$shardmark" predict shaped.h5 --ranks 2..65536 --network ndr400 --node-link nvlink4 --ranks-per-node 8 --memory 80GiB >text
has text 'Highest predicted throughput' 'Predicted steps' 'Predicted against measured' '65,536' '8,192' 'ndr400' 'fsdp(group=8)'
is_narrow text
! grep -qiE '\b(nan|inf)\b' text || fail "no number: $(grep -iE '\b(nan|inf)\b' text)"

"$shardmark" predict shaped.h5 --ranks 8 --global-batch 64 --price 2 --layouts --csv tables >/dev/null
for table in best predictions held_out layouts_3d; do [[ -s tables/$table.csv ]] || fail "no tables/$table.csv"; done
if command -v python3 >/dev/null; then
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
has layouts 'data x tensor x pipeline'

if command -v gnuplot >/dev/null; then
  "$shardmark" predict shaped.h5 --ranks 2..64 --plots plots >files
  [[ $(sort files) == $(ls plots/* | sort) ]] || fail "--plots named other files than it wrote: $(cat files)"
  has files plots/held_out.svg 'plots/predicted'
fi
refuses '--plots' shaped.h5 --plots plots --json

"$shardmark" predict --published >published
has published 'A100' 'V100' '136,334'

refuses '--ranks: expected a whole number from 1 to 1048576' shaped.h5 --ranks 0
refuses '--ranks: expected a whole number from 1 to 1048576' shaped.h5 --ranks 8..many
refuses 'ends before it begins' shaped.h5 --ranks 8..4
refuses 'is no link' shaped.h5 --network nonsense
refuses 'unknown strategy' shaped.h5 --strategy nonsense
refuses '--memory' shaped.h5 --memory much
refuses '--global-batch' shaped.h5 --global-batch 8 --batch-sizes 4
refuses 'holds the times of its blocks' small.h5
refuses 'name a study'
refuses '--published needs no study: leave out shaped.h5' shaped.h5 --published
refuses 'missing.h5' missing.h5
echo 'predict: every table and every refusal is as it should be'
