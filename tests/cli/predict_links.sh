#!/usr/bin/env bash
# QUICK
# shardmark predict without a study, which compares links by formula: its tables, and one line for bad input.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"
command=predict

"$shardmark" predict --precision fp32 >text
has text '100 B'
has text '450 GB/s'
! grep -q 'Amdahl' text || fail "Amdahl's curves need a step time"
is_narrow text

# 124,439,808 parameters in fp32 on 2 ranks: 2 (5 us + 248.9 MB / 12.5 GB/s) = 39.83 ms
"$shardmark" predict --model gpt2 --ranks 2 --step 120ms --link mine=5us,12.5GB/s --markdown >markdown
has markdown '39.83'
has markdown "Amdahl's curve"
"$shardmark" predict --json --step 1s >json
if can_use python3; then
  python3 -c 'import json; t = json.load(open("json"))["tables"]; assert [x["key"] for x in t] == ["all_reduce_overhead", "interconnects"], t'
fi

if can_use rsvg-convert; then
  "$shardmark" predict --model gpt2 --model mlp --step 120ms --ranks 4 --plots plots >files
  [[ $(sort files) == $(ls plots/* | sort) ]] || fail "--plots named other files than it wrote: $(cat files)"
  has files plots/interconnects_1.svg plots/interconnects_2.svg plots/all_reduce_overhead.svg
  has plots/all_reduce_overhead.svg 'on 4 ranks'
fi
refuses '--plots' --model gpt2 --plots plots --csv tables

refuses 'is not a link' --link nonsense
refuses "there is a link 'mine' already" --link mine=5us,25GB/s --link mine=6us,12.5GB/s
refuses '--step: expected a time above 0' --step 5
refuses 'unknown model' --model nonsense
refuses '--ranks' --model gpt2 --ranks 1
refuses 'name a study (x.h5), or --model and --step'
refuses 'add --table interconnects' --table overhead --step 100ms
echo 'predict without a study: every table and every refusal passed'
