#!/usr/bin/env bash
# QUICK
# Commands and flags of earlier versions, and of nccl-tests and torchrun: one line says what does it here.
set -euo pipefail
command=
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

# answers TEXT WORD...: the command line is refused with a line that has the text.
answers() {
  local text=$1
  command=$2
  refuses "$text" "${@:3}"
}
printf 'training: {model: mlp, strategy: ddp, batch_size: 1}\n' >tiny.yaml

answers 'there is no command completion now: shardmark --completion bash' completion bash
answers 'there is no command export now: shardmark report x.h5 --raw' export small.h5 --csv tables
answers 'there is no command reference now: shardmark list reference' reference list
answers 'there is no command interconnect now: shardmark predict --model' interconnect --model gpt2
answers 'there is no command export now' help export

answers '--tensor is a key of --set: --set tensor=2' plan tiny.yaml --tensor 2
answers '--tensor is a key of --set: --set tensor=2' plan tiny.yaml --tensor=2
answers '--clip is a key of --set: --set clip_norm=1' plan --step ddp --clip 1
answers '--recompute is a key of --set: --set checkpointing=full' plan tiny.yaml --recompute full
answers '--time-limit is a key of --set: --set sampling.time_limit=5' plan tiny.yaml --time-limit 5
answers '--pipeline-schedule is a key of --set' plan tiny.yaml --pipeline-schedule gpipe
answers '--seed is a key of --set: -- --set seed=3' launch tiny.yaml --print --seed 3
answers 'after --: --environment is a key of --set: --set environment=NCCL_ALGO=Ring' launch tiny.yaml --print -- --environment NCCL_ALGO=Ring
answers '--signal-ahead: that is --submit-flag=--signal=B:USR1@SECONDS now' submit tiny.yaml --signal-ahead 60
answers '--sbatch-flag: that is --submit-flag now' submit tiny.yaml --sbatch-flag=--qos=long
answers '--nproc_per_node: that is --ranks-per-node here' launch tiny.yaml --nproc_per_node 8
answers '--restart: that is --failures restart=TIME now' report small.h5 --restart 10m
answers '--watts: that is --failures watts=NUMBER now' predict shaped.h5 --watts 700
answers 'did you mean' plan tiny.yaml --modle mlp
if [[ -x $shardmark-torch ]]; then
  answers '--clip is a key of --set: --set clip_norm=1' run tiny.yaml -o x.h5 --clip 1
  answers '--memory-limit: that is --memory now' run tiny.yaml -o x.h5 --memory-limit 1GiB
  answers '--scale-lr is a key of --set: --set scale_lr=VALUE' train --model mlp --scale-lr
  answers '--warmup is a key of --set: --set warmup=3' train --model mlp --warmup 3
fi
echo 'old spellings: ok'
