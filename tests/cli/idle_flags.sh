#!/usr/bin/env bash
# QUICK
# Flags that have no effect together with the others are refused, and what a flag adds to a report is on its first
# screen (src/cli/flag_effects.cpp). If the table in that file lacks a flag of a command, any use of the command fails.
set -euo pipefail
command=
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

# idle TEXT COMMAND ARGUMENT...: the command is refused because the flag has no effect.
idle() {
  local text=$1
  command=$2
  shift 2
  refuses "$text" "$@"
  has err 'changes nothing here: '
}

printf 'training: {model: mlp, strategy: ddp, batch_size: 1}\n' >tiny.yaml
printf 'collectives: {operation: all_reduce, bytes: 64, transport: mpi}\n' >calls.yaml

# report: --table leaves out the table that the flag affects.
idle 'add --table strategies' report small.h5 --table memory --price 2
idle 'add --table goodput' report small.h5 --table strategies --failures restart=10m checkpoint_write=1s
idle '--price' report small.h5 --table memory --table goodput --price 2
idle 'add --table interconnects' report small.h5 --table strategies --price 2 --link mine=5us,12.5GB/s
"$shardmark" report small.h5 --table memory --table cost --price 2 >out
"$shardmark" report small.h5 --failures restart=10m checkpoint_write=1s --table goodput --price 2 >out

# --overwrite, where nothing is written.
for line in 'report small.h5' 'report small.h5 --csv -' 'report small.h5 --json' 'predict shaped.h5 --ranks 8' 'predict --model gpt2' \
  'compare small.h5 again.h5' 'report small.h5 --raw --json' 'plan tiny.yaml'; do
  # shellcheck disable=SC2086
  idle '--overwrite changes nothing here: it replaces files' $line --overwrite
done

idle '--memory' predict shaped.h5 --ranks 8 --table held_out --memory 80GiB
idle 'add --table predicted_layouts' predict shaped.h5 --ranks 8 --table best --layouts
idle '--price' predict shaped.h5 --ranks 8 --table held_out --price 2
idle '--step' predict --table overhead --step 100ms
idle '--margin' compare small.h5 again.h5 --write-baseline b.json --margin 3
idle '--csv' compare small.h5 again.h5 --write-baseline b.json --csv folder
idle '--steps' plan tiny.yaml --duration 1m --steps 5
idle '--raw' report small.h5 --raw
idle 'after --: --steps' launch tiny.yaml --print --container apptainer -- --duration 1m --steps 5
idle '--report' launch tiny.yaml --print --container apptainer --report
idle '--requeue' launch tiny.yaml --requeue --print

# In a single step, a value of an axis without effect is refused.
idle '--set: pipeline_schedule gpipe' plan --step ddp --set pipeline_schedule=gpipe
idle '--set: stages blocks' plan --step ddp --set stages=blocks
idle '--set: rank_order pp-dp' plan --step ddp -n 2 --set pipeline=2 rank_order=pp-dp
idle '--set: reduce_dtype fp32' plan --step ddp --set reduce_dtype=fp32
idle '--step: prefetch 2 of fsdp' plan --step 'fsdp(shard=gradients, prefetch=2)'
"$shardmark" plan --step ddp --set pipeline_schedule=1f1b stages=flops >out
"$shardmark" plan --step ddp --precision bf16 --set reduce_dtype=fp32 >out

# A plan merges points that run the same step, and says so once.
printf 'training: {model: mlp, strategy: ddp, batch_size: 1, pipeline_schedule: [gpipe, 1f1b, zero_bubble], stages: [flops, blocks]}\n' >same.yaml
"$shardmark" plan same.yaml --json >plan.json 2>err
grep -q '"num_points": 1,' plan.json || fail "one step is several points: $(head -5 plan.json)"
[[ $(wc -l <err) == 2 ]] || fail "not a line for each axis: $(cat err)"
has err 'warning: same.yaml: pipeline_schedule gpipe, zero_bubble changes nothing' 'stages blocks changes nothing'

# The first screen shows what a flag adds.
"$shardmark" report small.h5 --price 2 >out
has out 'Costs are at 2.000 per GPU-hour.' 'cost of 10^6' 'Tables, each with --table NAME'
"$shardmark" report small.h5 --failures restart=10m checkpoint_write=1s >out
has out 'Goodput'
"$shardmark" report small.h5 --link mine=5us,12.5GB/s >out
has out 'mine'
[[ $("$shardmark" report small.h5) != *'per GPU-hour'* ]] || fail "costs without a price"

if [[ -x $shardmark-torch ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  idle '--eval-every' train --model mlp --eval-every 1 --set eval_batches=0
  idle '--overwrite' doctor --overwrite
  idle '--transport' doctor --transport mpi
  idle '--stepbytes' collective all_reduce -i 8 -f 2
  idle '--op' collective all_gather --op max
  idle '--steps' run tiny.yaml -o x.h5 --duration 1m --steps 5
  idle '--trace' run calls.yaml -o x.h5 --device cpu --trace traces
  idle '--transport mpi' run calls.yaml -o x.h5 --device cpu --transport mpi
  idle '--set: reduce_dtype' train --model mlp --device cpu --set reduce_dtype=fp32
  idle '--set: rank_order' train --model mlp --device cpu --set rank_order=pp-dp
  idle '--strategy' train --model mlp --device cpu --strategy 'fsdp(shard=optimizer, prefetch=0)'
  printf 'model: mlp\neval_batches: 0\neval_every: 1\n' >train.yaml
  command=train
  refuses 'train.yaml:3:13: eval_every: changes nothing: eval_batches 0 evaluates nothing' train.yaml --device cpu
fi
