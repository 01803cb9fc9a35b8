#!/usr/bin/env bash
# NEEDS torch
# shardmark train as a user runs it: its output, the study, resuming under another strategy, weights, bad input, and
# kill -9 while checkpoints are written.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
common=(--model 'gpt2(layers=2, width=32, heads=2, sequence=32, vocabulary=256)' --data "text(files=$home/README.md $home/tests/cli/*.sh)" --lr 1e-3)

# Prints the losses of the given steps, one per line.
losses() { awk -v from="$1" -v to="$2" '$1 ~ /^[0-9]+$/ && $1 >= from && $1 <= to {print $1, $2}' out; }

# same_flops RANKS: in every line, the FLOP/s of a rank divided by its tokens/s is the model's FLOPs per token, 6 N + 12
# L C T. So the column does not depend on the speed of a matrix product that was measured at the start.
same_flops() {
  grep -q 'GFLOP/s' out || fail "no column of FLOP/s"
  awk -v at="$(($1 == 1 ? 7 : 8))" '$1 ~ /^[0-9]+$/ {gsub(",", ""); r = 1e9 * $(at + 1) / $at / 221184; if (r < 0.998 || r > 1.002) exit 1}' out ||
    fail "another number of FLOPs for a token"
}

# A run with everything; its losses are the yardstick of what follows.
train 2 0 --strategy fsdp --steps 8 --batch-size 6 --schedule cosine --eval-every 4 --optimizer "adamw(weight_decay=0.1)" --set warmup=2 deterministic=true \
  --checkpoint whole --checkpoint-every 4 --save-weights a.safetensors -o run.h5
says 'held-out loss'
losses 1 8 >losses
[[ $(wc -l <losses) == 8 ]] || fail "not one line a step"
same_flops 2
awk 'NR == 1 {first = $2} END {exit !($2 < first)}' losses || fail "the loss does not fall"
"$program" report --all run.h5 >report
grep -q 'Training runs' report || fail "no table of the run"

# An existing study or directory is not overwritten.
refuses 'exists' -o run.h5
refuses 'go on with --resume' --checkpoint whole

# From step 4, which fsdp wrote on 2 ranks, the strategies zero3 on 3 ranks, fsdp(shard=optimizer) on 4 and single on 1
# continue with the same losses.
for other in '3 zero3' '4 fsdp(shard=optimizer)' '1 single'; do
  read -r n strategy <<<"$other"
  mkdir "$n"
  cp whole/step-000000004.safetensors "$n"
  train "$n" 0 --strategy "$strategy" --steps 8 --schedule cosine --set warmup=2 --optimizer "adamw(weight_decay=0.1)" \
    --checkpoint "$n" --resume
  says 'continuing after step 4'
  same_flops "$n"
  losses 5 8 >resumed
  paste resumed <(tail -n 4 losses) | awk '{d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 2e-5) exit 1}' ||
    fail "$other has other losses than the run it goes on from"
done

# Weights are passed from one run to another. Only a model with the same shapes accepts them.
train 1 0 --strategy single --steps 1 --batch-size 4 --weights a.safetensors
awk 'NR == FNR {last = $2; next} $1 == 1 && $2 > last + 0.5 {exit 1}' losses <(losses 1 1) || fail "weights were not taken"

# Bad input ends the run before anything is computed, on every rank, with one line.
head -c 20000 a.safetensors >cut.safetensors
refuses 'truncated' --weights cut.safetensors
refuses 'is of another model' --weights a.safetensors --model 'gpt2(layers=1, width=32, heads=2, sequence=32, vocabulary=256)'
refuses 'momentum' --optimizer 'adamw(momentum=0.9)'
ranks=2 refuses 'one rank' --strategy single
refuses 'need --checkpoint' --resume
mkdir other && cp whole/step-000000008.safetensors other
refuses 'seed was 1, and is 2 now' --checkpoint other --resume --set seed=2
refuses 'global_batch was 12, and is 8 now' --checkpoint other --resume --batch-size 8

# If the newest checkpoint is damaged, it is reported and the previous one is used.
cp -r whole damaged
python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(150000); byte = file.read(1)[0]
    file.seek(150000); file.write(bytes([byte ^ 255]))    # a byte that certainly differs
' damaged/step-000000008.safetensors
train 2 0 --strategy ddp --steps 6 --checkpoint damaged --resume
says 'step-000000008.safetensors'
says 'continuing after step 4'

# Low precision, and a strategy that is chosen at run time.
train 2 0 --strategy auto --precision bf16 --steps 4 --batch-size 4 -o bf16.h5
says 'auto chose ddp: all 5 candidates fit'
losses 1 4 | awk '!($2 > 0 && $2 < 20) {exit 1}' || fail "losses in bf16"

# Images with labels: the accuracy on the held-out images is the same on any number of ranks.
mkdir cifar
python3 - cifar <<'PYTHON'
import pathlib, random, sys
random.seed(1)
for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
    records = (bytes([random.randrange(10)]) + random.randbytes(3072) for _ in range(10000))
    (pathlib.Path(sys.argv[1]) / name).write_bytes(b"".join(records))
PYTHON
for n in 1 2; do
  train $n 0 --model 'resnet(layers=20, width=4, batch_norm=frozen)' --data 'cifar10(dir=cifar)' --strategy fsdp --steps 3 --batch-size $((8 / n)) \
    --set eval_batches=100
  says 'accuracy'
  grep -o 'accuracy.*' out | tail -n 1 >accuracy-$n
done
cmp accuracy-1 accuracy-2 || fail "accuracy depends on the ranks"

# A loss that is not finite ends the run, with the step.
train 2 1 --strategy ddp --optimizer sgd --lr 1e30 --steps 9
says 'not finite: step'

# kill -9 of all ranks while checkpoints are written continuously: the run can be resumed from what is left.
for delay in 0.7 1.6; do
  rm -rf kill
  trains 2 --strategy zero3 --steps 100000 --checkpoint kill --checkpoint-every 1
  wait_for 300 "a checkpoint" compgen -G 'kill/step-*.safetensors'
  sleep "$delay"
  for pid in $(ours); do kill -9 "$pid" 2>/dev/null || true; done
  ends
  newest=$(ls kill/step-*.safetensors | tail -n 1 | sed 's/.*step-0*\([0-9]*\).*/\1/')
  train 1 0 --strategy single --steps $((newest + 1)) --checkpoint kill --resume
  says "continuing after step $newest"
done
echo "ok"
