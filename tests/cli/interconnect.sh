#!/usr/bin/env bash
# shardmark interconnect: the tables it prints, and one line for bad input.
set -euo pipefail

shardmark=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAILED: $*"; exit 1; }
has() { grep -qF -- "$2" "$1" || fail "'$2' is not in: $(cat "$1")"; }

"$shardmark" interconnect >text
has text '100 B'
has text '450 GB/s'
! grep -q 'Amdahl' text || fail "Amdahl's curves need a step time"
if awk 'length > 135' text | grep -q .; then fail "lines of more than 135 columns: $(awk 'length > 135' text)"; fi

# 124,439,808 parameters in fp32 on 2 ranks: 2 (5 us + 248.9 MB / 12.5 GB/s) = 39.83 ms
"$shardmark" interconnect --model gpt2 --ranks 2 --step 120ms --link mine=5us,12.5GB/s --markdown >markdown
has markdown '39.83'
has markdown "Amdahl's curve"
"$shardmark" interconnect --json --step 1s >json
if command -v python3 >/dev/null; then
  python3 -c 'import json; t = json.load(open("json"))["tables"]; assert [x["key"] for x in t] == ["all_reduce_overhead", "interconnects"], t'
fi

refuses() {
  local text=$1 status=0
  shift
  "$shardmark" interconnect "$@" >out 2>err || status=$?
  [[ $status == 2 && $(wc -l <err) == 1 && ! -s out ]] || fail "interconnect $*: status $status: $(cat err)"
  has err "$text"
}
refuses 'is no link' --link nonsense
refuses 'is no time' --step 5
refuses 'unknown model' --model nonsense
refuses '--ranks' --ranks 1
echo 'interconnect: every table and every refusal is as it should be'
