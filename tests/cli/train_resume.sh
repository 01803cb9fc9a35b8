#!/usr/bin/env bash
# NEEDS torch
# A training run that resumes from a checkpoint: the result is bitwise equal to that of a run without a break, also with
# compressed reductions. Differences from the earlier run are reported in one line each, or refused.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
with_own_mounts
common=(--set eval_batches=0)
gpt2='gpt2(layers=1, width=32, heads=2, sequence=32, vocabulary=256)'
mlp='mlp(features=16, width=16, layers=2, classes=4)'

warns() { # these warnings in any order and no others, apart from those about cores and what uses them
  for line in "$@"; do printf '%s\n' "$line"; done | sort >expected
  sed -n '/ ranks share /d; / are bound to the same /d; /times will be too long by an unknown factor/d; s/^shardmark: warning: //p' out | sort >warnings
  diff expected warnings >&2 || fail "other warnings"
}
from() { # makes the directory `go` with only this checkpoint, to resume in
  rm -rf go && mkdir go && cp "$1" go
}

# The residuals of reductions are resumed, too: the weights equal those without a break, byte by byte, and there is no
# warning.
for reduction in 'topk(ratio=0.05)' 'powersgd(rank=1)' int8 'cast(to=bf16)' plain; do
  flags=(--model "$gpt2" --batch-size 2 --steps 6 --set deterministic=true
    --strategy "ddp(bucket_mb=0.03, first_bucket_mb=0.01, reduction=$reduction)")
  rm -rf whole
  train 2 0 "${flags[@]}" --checkpoint whole --checkpoint-every 3 --save-weights whole.safetensors --overwrite
  from whole/step-000000003.safetensors
  train 2 0 "${flags[@]}" --checkpoint go --resume --save-weights gone-on.safetensors --overwrite
  warns
  cmp whole.safetensors gone-on.safetensors || fail "$reduction: not the bytes of the run without a break"
  cmp whole/step-000000006.safetensors go/step-000000006.safetensors || fail "$reduction: another checkpoint"
  [[ $reduction != topk* ]] || cp -r whole topk
done

# In other layouts the residual starts empty, and one line says so. The weights in such a checkpoint can be used like
# any other.
flags=(--model "$gpt2" --steps 4 --checkpoint go --resume)
buckets='bucket_mb=0.03, first_bucket_mb=0.01'
from topk/step-000000003.safetensors
train 4 0 "${flags[@]}" --strategy "ddp($buckets, reduction=topk(ratio=0.05))"
warns 'the residual of topk(ratio=0.05) on 4 ranks starts empty: the checkpoint holds that of topk(ratio=0.05) on 2 ranks'
from topk/step-000000003.safetensors
train 2 0 "${flags[@]}" --strategy "ddp($buckets, reduction=powersgd)"
warns 'the residual of powersgd(rank=2) on 2 ranks starts empty: the checkpoint holds that of topk(ratio=0.05) on 2 ranks'
from topk/step-000000003.safetensors
train 2 0 "${flags[@]}" --strategy 'ddp(reduction=topk(ratio=0.05))'
warns 'the residual of topk(ratio=0.05) on 2 ranks starts empty: the checkpoint holds that of topk(ratio=0.05) on 2 ranks, in other buckets'
from topk/step-000000003.safetensors
train 2 0 "${flags[@]}" --strategy fsdp
warns "the checkpoint's residual of topk(ratio=0.05) on 2 ranks is left out: this run has none"
from whole/step-000000003.safetensors
train 1 0 "${flags[@]}" --strategy 'ddp(reduction=topk)'
warns 'the residual of topk(ratio=0.01) on 1 rank starts empty: the checkpoint holds none'
train 1 0 --model "$gpt2" --strategy single --steps 1 --weights topk/step-000000003.safetensors
warns

# A checkpoint is at most as long as the space that is checked before the first step, including the residuals.
if [[ -n ${OWN_MOUNTS:-} ]]; then
  size=$(stat -c %s topk/step-000000006.safetensors)
  mkdir disk
  mount -t tmpfs -o size=$((size * 3 / 4)) tmpfs disk
  ranks=2 refuses '--checkpoint: the checkpoints need' --model "$gpt2" --strategy "ddp($buckets, reduction=topk(ratio=0.05))" --checkpoint disk/run
  umount disk
fi

# Each option that has changed since the checkpoint is reported in one line, with the old and the new value. The length
# of a schedule is reported only if rates depend on it.
flags=(--model "$mlp" --batch-size 4 --checkpoint go)
differs=': the run differs from one that had this from its start'
rm -rf go
train 1 0 "${flags[@]}" --schedule cosine --steps 3
train 1 0 "${flags[@]}" --schedule cosine --steps 5 --resume
warns "the schedule's horizon was 3 steps up to step 3, and is 5 steps from here on$differs"
train 1 0 "${flags[@]}" --steps 6 --resume --lr 0.002 --set clip_norm=1 warmup=2 --precision fp64 --optimizer "adamw(beta2=0.99)"
warns "schedule was cosine(end=0.0) up to step 5, and is constant from here on$differs" \
  "lr was 0.0003 up to step 5, and is 0.002 from here on$differs" "clip_norm was 0.0 up to step 5, and is 1.0 from here on$differs" \
  "warmup was 0 up to step 5, and is 2 from here on$differs" "precision was fp32 up to step 5, and is fp64 from here on$differs" \
  "beta2 was 0.95 up to step 5, and is 0.99 from here on$differs"
train 1 0 "${flags[@]}" --steps 7 --resume --lr 0.002 --set clip_norm=1 warmup=2 --precision fp64 --optimizer "adamw(beta2=0.99)"
warns

# fp16 has a loss scale, which no other precision has.
rm -rf go
train 1 0 "${flags[@]}" --precision bf16 --steps 2
train 1 0 "${flags[@]}" --precision fp16 --steps 3 --resume
warns "precision was bf16 up to step 2, and is fp16 from here on$differs" \
  'the checkpoint holds no loss scale of fp16: it starts afresh at 65536'
awk '$1 == 3 && ($(NF - 1) < 1 || $NF !~ /^[0-9]+$/) {exit 1}' out || fail "no loss scale of step 3"
train 1 0 "${flags[@]}" --precision fp16 --steps 4 --resume
warns
train 1 0 "${flags[@]}" --precision bf16 --steps 5 --resume
warns "precision was fp16 up to step 4, and is bf16 from here on$differs"

# Different data of the same length are refused before anything is computed, whether text or tokens in documents.
head -c 20000 /dev/zero | tr '\0' a >text
python3 -c '
import array
header = array.array("i", [20240520, 1, 4000] + [0] * 253)
open("tokens.bin", "wb").write(header.tobytes() + array.array("H", [i % 200 for i in range(4000)]).tobytes())'
for data in 'text(files=text)' 'tokens(files=tokens.bin, documents=masked, begin=7, end=-1)'; do
  file=$(sed 's/.*files=\([^,)]*\).*/\1/' <<<"$data")
  flags=(--model "$gpt2" --data "$data" --batch-size 2 --checkpoint "data-$file")
  train 1 0 "${flags[@]}" --steps 2
  train 1 0 "${flags[@]}" --steps 3 --resume
  warns
  cp "$file" former
  printf '\7' | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
  refuses "the files of $data hold other bytes now (hash " "${flags[@]}" --steps 4 --resume
  says "start on these from the weights alone, in another directory: --weights data-$file/step-000000003.safetensors"
  if grep -q '^ *4 ' out; then fail "it trained on other data"; fi
  train 1 0 --model "$gpt2" --data "$data" --steps 1 --checkpoint "other-$file" --weights "data-$file/step-000000003.safetensors"
  cp former "$file"
  train 1 0 "${flags[@]}" --steps 4 --resume
done
echo ok
