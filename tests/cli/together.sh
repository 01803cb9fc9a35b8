#!/usr/bin/env bash
# NEEDS torch
# Collectives at the same time as a load: each point determines how often both are repeated, and the study stores that.
# Later measurements in the same study use the same numbers. The first screen shows the result.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
cat >t.yaml <<'Y'
name: t
ranks: 2
repeats: 1
sampling: {warmup_steps: 1, min_steps: 6, max_steps: 6}
collectives:
  operation: all_reduce
  bytes: [8, 64KiB]
  beside: [{matmul: {m: 64, n: 64, k: 64}}, {block: {model: {gpt2: {layers: 1, width: 32, heads: 2, sequence: 16, vocabulary: 64}}, batch: 1}}]
Y
runs "$program" launch t.yaml -n 2 -o t.h5
ends 0; has "4 points measured"
sed -i 's/^repeats: 1/repeats: 3/' t.yaml
runs "$program" launch t.yaml -n 2 -o t.h5 --resume
ends 0; has "8 points measured, 4 from before"
"$program" report t.h5 --raw --json >t.json || fail "report --raw"
python3 - <<'P' || fail "repetitions of a point have not the same round"
import json
rounds = {}
for record in json.load(open("t.json"))["points"]:
    rounds.setdefault((record["bytes"], record["beside"]), []).append((record["num_load_units"], record["num_operations"]))
assert len(rounds) == 4, rounds
for point, counts in rounds.items():
    assert len(counts) == 3 and len(set(counts)) == 1 and min(counts[0]) >= 1, (point, counts)
P
runs "$program" report t.h5
ends 0; has "Two things at once" "all_reduce of 64.0 KiB" "matmul" "together"
runs "$program" report t.h5 --table together --explain
ends 0; has "no overlap" "together / longer alone"
echo together: ok
