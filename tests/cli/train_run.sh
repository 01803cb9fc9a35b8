#!/usr/bin/env bash
# NEEDS torch
# Features of a training run: its length in steps or epochs, evaluation, loss scale, memory, and runs in YAML.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
mlp='mlp(features=16, width=16, layers=2, classes=4)'

steps() { awk '$1 ~ /^[0-9]+$/ {n = $1} END {print n + 0}' out; }

# An epoch is one pass over the training samples. 2 of the 40 samples are held out, and a batch has 2 x 3.
train 2 0 --model "$mlp" --data 'synthetic(size=40)' --batch-size 3 --epochs 2
says '2 epochs: 13 steps'
[[ $(steps) == 13 ]] || fail "2 epochs are $(steps) steps"
refuses 'excludes' --model "$mlp" --epochs 2

# Evaluation uses all held-out samples, some of them, or none. 400 samples hold out 20, and a batch of the two ranks has
# 2 x 4 of them.
for batches in all 1 2 0; do
  flags=(--eval-every 1); [[ $batches == all ]] || flags+=(--set "eval_batches=$batches")
  [[ $batches != 0 ]] || flags=(--set eval_batches=0)    # with this, --eval-every would have no effect and be refused
  train 2 0 --model "$mlp" --data 'synthetic(size=400)' --batch-size 4 --steps 2 --lr 0.01 "${flags[@]}"
  grep -o 'held-out loss.*' out >"held-out-$batches" || true
done
[[ $(wc -l <held-out-all) == 2 && $(wc -l <held-out-1) == 2 && ! -s held-out-0 ]] || fail "evaluations: $(wc -l held-out-*)"
if cmp -s held-out-all held-out-1 || cmp -s held-out-1 held-out-2; then fail "eval_batches changes nothing"; fi

# With fp16, each line and the end of the run show the loss scale and the number of skipped steps. The report also has
# the latter.
train 2 0 --model "$mlp" --precision fp16 --strategy fsdp --steps 3 --batch-size 4 -o fp16.h5
grep -q 'peak loss scale  skipped$' out || fail "no column of the loss scale"
awk '$1 == 3 && ($(NF - 1) < 1 || $NF !~ /^[0-9]+$/) {exit 1}' out || fail "no loss scale of step 3"
grep -Eq '^[0-9]+ of 3 steps skipped, their gradients were not finite in fp16; loss scale [0-9]+$' out || fail "no loss scale at the end"
"$program" report --all fp16.h5 >report
grep -q 'skipped' report || fail "the report does not tell skipped steps"
train 1 0 --model "$mlp" --strategy single --steps 1
if grep -q 'loss scale' out; then fail "a loss scale in fp32"; fi

# A model that certainly does not fit is refused at the start. Temporary memory during set-up counts, too.
ranks=2 refuses 'the state of a rank needs 1.85 GiB, a rank has 1.00 GiB; choose a smaller model, or more ranks' \
  --model gpt2 --strategy ddp --memory 1GiB
wide='mlp(features=1024, width=1024, layers=2, classes=8)'
train 2 1 --model "$wide" --strategy ddp --optimizer 'sgd(momentum=0)' --steps 1 --memory 11MiB
says 'out of memory: '
says 'the limit of a rank is 11.0 MiB'
if grep -q ' step ' out; then fail "it began to train"; fi
train 2 0 --model "$wide" --strategy ddp --optimizer 'sgd(momentum=0)' --steps 1 --memory 64MiB

# A run in YAML. Flags override it, wherever they are on the command line.
cat >run.yaml <<YAML
model: {mlp: {features: 16, width: 16, layers: 2, classes: 4}}
data: {synthetic: {size: 100}}
strategy: zero3
optimizer: {sgd: {lr: 0.05, momentum: 0.5}}
schedule: {step: {every: 2, factor: 0.5}}
global_batch: 8
accumulation: 2
clip_norm: 1
steps: 4
eval_batches: 1
YAML
train 2 0 run.yaml
cp out from-yaml
says '8 samples a step, 95 to train on'
[[ $(steps) == 4 ]] || fail "not the steps of the file"
train 2 0 --model "$mlp" --data 'synthetic(size=100)' --strategy zero3 --optimizer 'sgd(lr=0.05, momentum=0.5)' \
  --schedule 'step(every=2, factor=0.5)' --batch-size 2 --steps 4 --set accumulation=2 clip_norm=1 eval_batches=1
cmp <(awk '$1 ~ /^[0-9]+$/ {print $1, $2, $3, $4}' from-yaml) <(awk '$1 ~ /^[0-9]+$/ {print $1, $2, $3, $4}' out) ||
  fail "the file and the flags that mean the same give different runs"
train 2 0 --steps 2 run.yaml --lr 0.025 --batch-size 4
[[ $(steps) == 2 ]] || fail "--steps does not go before the file"
says '16 samples a step'
says 'peak learning rate 0.025'
train 1 0 run.yaml --epochs 1 --set accumulation=1 -o yaml.h5
says '1 epoch: 12 steps'
# Contradictions are reported with their position in the file, and those of flags by name.
ranks=2 refuses 'run.yaml:6:15: global_batch asks for 8 samples a step, which 2 ranks with accumulation 3 cannot share evenly' run.yaml --set accumulation=3
sed 's/accumulation: 2/accumulation: 3/' run.yaml >three.yaml
ranks=2 refuses 'three.yaml:6:15: global_batch asks for 8 samples a step, which 2 ranks with accumulation 3 cannot share evenly' three.yaml
ranks=2 refuses '--global-batch asks for 9 samples a step, which 2 ranks with accumulation 2 cannot share evenly' run.yaml --global-batch 9
sed 's/strategy: zero3/strategy: {hpz: {group: 2}}/' run.yaml >groups.yaml
refuses 'groups.yaml:3:11: strategy: ' groups.yaml
refuses '--strategy: ' --model "$mlp" --strategy 'hpz(group=2)'
train 2 0 run.yaml --global-batch 16 --steps 1
says '16 samples a step'
refuses '--batch-size excludes --global-batch' run.yaml --global-batch 16 --batch-size 2
# The words of a YAML file are also accepted by its flags.
gpt2='gpt2(layers=2, width=16, heads=2, sequence=8, vocabulary=16)'
train 1 0 --model "$gpt2" --strategy single --steps 1 --set checkpointing=full clip_norm=none
refuses "--set: checkpointing: expected" --model "$gpt2" --set checkpointing=half
sed 's/zero3/[ddp, zero3]/' run.yaml >list.yaml
refuses 'list.yaml:3:11: strategy: a training run has one strategy, not a list' list.yaml
sed 's/strategy/stratgy/' run.yaml >typo.yaml
refuses "typo.yaml:3:1: unknown key 'stratgy' in the training run; did you mean 'strategy'? accepted: model" typo.yaml
refuses 'none.yaml: cannot be read: No such file or directory; suites/train/ holds examples' none.yaml
refuses 'a training run needs --model, or a file that names one' --steps 1
ln -s "$home/suites" .
for file in suites/train/*.yaml; do train 2 0 "$file" --steps 1 --set warmup=0 eval_batches=0; done
echo ok
