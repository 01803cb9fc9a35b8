#!/usr/bin/env bash
# NEEDS torch
# shardmark train as a user meets it: lines, study, resuming under another strategy, weights, bad input, a full disk,
# SIGTERM, and kill -9 while checkpoints are written.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
job=
trap 'if [[ -n $job ]]; then kill "$job" 2>/dev/null || true; fi; rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
model='gpt2(layers=2, width=32, heads=2, sequence=32, vocabulary=256)'
data='text(files=README.md tests/cli/*.sh)'

fail() { echo "FAILED: $1"; tail -n 30 "$scratch/out"; exit 1; }
train() { local n=$1; shift; "${mpirun[@]}" -n "$n" "$program" train --model "$model" --data "$data" --lr 1e-3 "$@" >"$scratch/out" 2>&1; }
says() { grep -qF -- "$1" "$scratch/out" || fail "it does not say: $1"; }
# The losses of the steps given, one a line.
losses() { awk -v from="$1" -v to="$2" '$1 ~ /^[0-9]+$/ && $1 >= from && $1 <= to {print $1, $2}' "$scratch/out"; }
refuses() { # words, then arguments
  local words=$1; shift
  if train 2 --steps 3 "$@"; then fail "it accepts $*"; fi
  says "$words"
  if grep -q '^ *1 ' "$scratch/out"; then fail "it trained before it refused $*"; fi
}

# A run with everything; its losses are the yardstick of what follows.
train 2 --strategy fsdp --steps 8 --batch-size 6 --schedule cosine --warmup 2 --eval-every 4 --weight_decay 0.1 --deterministic \
  --checkpoint "$scratch/whole" --checkpoint-every 4 --save-weights "$scratch/a.safetensors" -o "$scratch/run.h5" || fail "train"
says 'held-out loss'
losses 1 8 >"$scratch/losses"
[[ $(wc -l <"$scratch/losses") == 8 ]] || fail "not one line a step"
awk 'NR == 1 {first = $2} END {exit !($2 < first)}' "$scratch/losses" || fail "the loss does not fall"
"$program" report --all "$scratch/run.h5" >"$scratch/report"
grep -q 'Training runs' "$scratch/report" || fail "no table of the run"

# Two deterministic runs write the same weights, byte by byte; an existing study or directory is not overwritten.
train 2 --strategy fsdp --steps 8 --batch-size 6 --schedule cosine --warmup 2 --eval-every 4 --weight_decay 0.1 --deterministic \
  --save-weights "$scratch/b.safetensors" || fail "train again"
cmp "$scratch/a.safetensors" "$scratch/b.safetensors" || fail "two runs differ"
refuses 'exists' -o "$scratch/run.h5"
refuses 'go on with --resume' --checkpoint "$scratch/whole"

# From step 4, written by fsdp on 2 ranks: zero3 on 3 ranks and ddp on 4 see the same losses.
for other in '3 zero3' '4 fsdp(shard=optimizer)' '1 single'; do
  read -r ranks strategy <<<"$other"
  mkdir -p "$scratch/$ranks"
  cp "$scratch/whole/step-000000004.safetensors" "$scratch/$ranks"
  train "$ranks" --strategy "$strategy" --steps 8 --schedule cosine --warmup 2 --weight_decay 0.1 \
    --checkpoint "$scratch/$ranks" --resume || fail "resume with $other"
  says 'continuing after step 4'
  losses 5 8 >"$scratch/resumed"
  paste "$scratch/resumed" <(tail -n 4 "$scratch/losses") | awk '{d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 2e-5) exit 1}' ||
    fail "$other has other losses than the run it goes on from"
done

# Weights go from one run to another; only a model that they fit takes them.
train 1 --strategy single --steps 1 --batch-size 4 --weights "$scratch/a.safetensors" || fail "weights"
awk 'NR == FNR {last = $2; next} $1 == 1 && $2 > last + 0.5 {exit 1}' "$scratch/losses" <(losses 1 1) || fail "weights were not taken"

# Bad input ends it before anything computes, on every rank, in one line.
head -c 20000 "$scratch/a.safetensors" >"$scratch/cut.safetensors"
refuses 'truncated' --weights "$scratch/cut.safetensors"
refuses 'no such file' --weights "$scratch/none.safetensors"
refuses 'is of another model' --weights "$scratch/a.safetensors" --model 'gpt2(layers=1, width=32, heads=2, sequence=32, vocabulary=256)'
refuses 'optimizer' --momentum 0.9
refuses "--lr: expected a number" --lr nan
refuses '--seed: expected a whole number from 0' --seed -1
refuses '--checkpoint: an empty value' --checkpoint ""
refuses 'one rank' --strategy single
refuses 'accepted: constant, cosine, step' --schedule linear
refuses 'need --checkpoint' --resume
mkdir "$scratch/other" && cp "$scratch/whole/step-000000008.safetensors" "$scratch/other"
refuses 'seed was 1, and is 2 now' --checkpoint "$scratch/other" --resume --seed 2
refuses 'global_batch was 12, and is 8 now' --checkpoint "$scratch/other" --resume --batch-size 4

# A damaged newest checkpoint is named, and the one before is taken.
cp -r "$scratch/whole" "$scratch/damaged"
python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(150000); byte = file.read(1)[0]
    file.seek(150000); file.write(bytes([byte ^ 255]))    # a byte that certainly differs
' "$scratch/damaged/step-000000008.safetensors"
train 2 --strategy ddp --steps 6 --checkpoint "$scratch/damaged" --resume || fail "resume past a damaged checkpoint"
says 'step-000000008.safetensors'
says 'continuing after step 4'

# A full disk: the run goes on, and ends with status 3 and a line that says so; the checkpoint from before stays.
size=$(stat -c %s "$scratch/whole/step-000000008.safetensors")
mkdir "$scratch/full" && cp "$scratch/whole/step-000000004.safetensors" "$scratch/full"
# The ranks' files may be half as long as a checkpoint; over TCP, because Open MPI's shared memory is files as well.
"${mpirun[@]}" --mca btl self,tcp -n 2 bash -c 'ulimit -f "$1"; shift; exec "$@"' - $((size / 2048)) "$program" train --model "$model" \
  --data "$data" --lr 1e-3 --strategy ddp --steps 6 --checkpoint "$scratch/full" --checkpoint-every 1 --resume >"$scratch/out" 2>&1 && status=0 || status=$?
[[ $status == 3 && $(losses 6 6) == 6* ]] || fail "a full disk: exit status $status instead of 3, or not all steps"
says 'the checkpoint of step 5 was not written'
says 'failed: 2 of 2 checkpoints were not written, the last of them at step 6'
[[ $(ls "$scratch/full") == step-000000004.safetensors ]] || fail "what a full disk left: $(ls "$scratch/full")"

# SIGTERM to one rank ends all ranks at the same step, with a checkpoint.
: >"$scratch/out"    # the lines of the run before are none of this one
train 2 --strategy zero3 --steps 100000 --checkpoint "$scratch/term" &
job=$!
for _ in $(seq 300); do grep -q '^ *5 ' "$scratch/out" && break; sleep 0.1; done
says 'held out'    # it has begun
kill -TERM "$(pgrep -f "$scratch/term" | while read -r pid; do [[ $(readlink "/proc/$pid/exe") == "$(readlink -f "$program")-torch" ]] && echo "$pid"; done | head -n 1)"
if wait "$job"; then fail "a stopped run is no finished one"; fi
says 'stopped by a signal after step'
step=$(sed -n 's/.*stopped by a signal after step \([0-9]*\) of.*/\1/p' "$scratch/out" | head -n 1)
[[ -e $scratch/term/step-$(printf '%09d' "$step").safetensors ]] || fail "no checkpoint of step $step: $(ls "$scratch/term")"

# Low precision, and a strategy that is chosen where it runs.
for precision in bf16 fp16; do
  train 2 --strategy auto --precision "$precision" --steps 4 --batch-size 4 -o "$scratch/$precision.h5" || fail "train in $precision"
  says 'auto chose ddp: all 5 candidates fit'
  losses 1 4 | awk '!($2 > 0 && $2 < 20) {exit 1}' || fail "losses in $precision"
done

# Images with labels: accuracy on those held out, the same on any number of ranks.
mkdir "$scratch/cifar"
python3 - "$scratch/cifar" <<'PYTHON'
import pathlib, random, sys
random.seed(1)
for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
    records = (bytes([random.randrange(10)]) + random.randbytes(3072) for _ in range(10000))
    (pathlib.Path(sys.argv[1]) / name).write_bytes(b"".join(records))
PYTHON
for ranks in 1 2; do
  "${mpirun[@]}" -n $ranks "$program" train --model 'resnet(layers=20, width=4, batch_norm=frozen)' --data "cifar10(dir=$scratch/cifar)" \
    --strategy fsdp --lr 1e-3 --steps 3 --batch-size $((8 / ranks)) >"$scratch/out" 2>&1 || fail "train on images"
  says 'accuracy'
  grep -o 'accuracy.*' "$scratch/out" | tail -n 1 >"$scratch/accuracy-$ranks"
done
cmp "$scratch/accuracy-1" "$scratch/accuracy-2" || fail "accuracy depends on the ranks"

# A loss that is not finite ends it with its step.
if train 2 --strategy ddp --optimizer sgd --lr 1e30 --steps 9; then fail "an infinite loss"; fi
says 'not finite: step'

# kill -9 of all ranks while checkpoints are written all the time: what is left can be gone on from.
for delay in 0.7 1.1 1.6; do
  rm -rf "$scratch/kill"
  train 2 --strategy zero3 --steps 100000 --checkpoint "$scratch/kill" --checkpoint-every 1 &
  job=$!
  for _ in $(seq 300); do compgen -G "$scratch/kill/step-*.safetensors" >/dev/null && break; sleep 0.1; done
  sleep "$delay"
  for pid in $(pgrep -f "$scratch/kill"); do
    if [[ $(readlink "/proc/$pid/exe") == "$(readlink -f "$program")-torch" ]]; then kill -9 "$pid" 2>/dev/null || true; fi
  done
  wait "$job" || true
  newest=$(ls "$scratch/kill"/step-*.safetensors | tail -n 1 | sed 's/.*step-0*\([0-9]*\).*/\1/')
  train 1 --strategy single --steps $((newest + 1)) --checkpoint "$scratch/kill" --resume || fail "resume after kill -9"
  says "continuing after step $newest"
done
echo "ok"
