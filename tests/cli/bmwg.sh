#!/usr/bin/env bash
# NEEDS torch
# ALONE a minute of steps is timed; beside other tests it takes ten times as long.
# Measures the suite of the IETF draft with tiny sizes and reads the results: each block has rows, and the values are
# consistent.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
sed -E -e 's/MiB/KiB/g; s/8388608/8192/; s/(m|n|k): 512/\1: 32/g; s/^repeats: 3/repeats: 2/; s/_steps: 20/_steps: 5/g; s/time_limit: 60/time_limit: 600/' \
  -e 's/layers: 2, width: 256, heads: 4, sequence: 128/layers: 1, width: 32, heads: 2, sequence: 16/' "$home/suites/bmwg.yaml" >s.yaml
runs "$program" launch s.yaml -n 2 -o s.h5
ends 0

runs "$program" report s.h5
ends 0; has bmwg bmwg_collectives bmwg_jct bmwg_form
runs "$program" report s.h5 --table bmwg
ends 0
has 'draft-calabria-bmwg-ai-fabric-training-bench' 'needs --line-rate' 'all_reduce' 'verified: whole messages to all, one round' 'not stated'
runs "$program" report s.h5 --table bmwg --line-rate 1GB/s --csv tables
ends 0
python3 - <<'P' || fail "the tables do not say what they should"
import csv
def rows(table):
    with open(f"tables/{table}.csv", newline="") as file: return list(csv.DictReader(file))
values = {row["metric"]: row for row in rows("bmwg")}
for metric in ("AllReduce BusBW, P50", "AllToAll JCT, P99", "JCT ratio, synthetic", "overlap fraction, training step",
               "largest interference factor of two collectives", "largest CV of repeats"):
    assert values[metric]["value"], values[metric]
assert any(name.startswith("soak") and row["value"] for name, row in values.items()), values.keys()
assert values["ECN marking ratio"]["why not"]
collectives = rows("bmwg_collectives")
for operation in ("all_reduce", "all_to_all", "all_gather", "reduce_scatter", "all_to_all_v"):
    assert any(row["model, operation"].startswith(operation) for row in collectives), operation
for row in collectives:
    if row["batch or size"] != "16.0 KiB": assert int(row["iterations"]) == 200, row    # 100 in each of two repeats; the soak test has another number
    assert float(row["BusBW P50 (Gbit/s)"]) <= float(row["BusBW P99 (Gbit/s)"]), row
    assert float(row["S_fabric (MB)"]) == 0, row       # there is only one node
    assert 0.5 <= float(row["JFI of ranks"]) <= 1, row
for row in rows("bmwg_jct"):
    if row["JCT sequential (ms)"]:
        both = float(row["C (ms)"]) + float(row["communication (ms)"])
        assert abs(float(row["JCT sequential (ms)"]) / both - 1) < 1e-3, row
    assert abs(float(row["JCT ratio overlapped"]) * float(row["roofline (ms)"]) / float(row["JCT overlapped (ms)"]) - 1) < 1e-2, row
P
echo bmwg: ok
