#!/usr/bin/env bash
# NEEDS torch
# What shardmark train writes: places that cannot take it are refused before the first step, a file is replaced only when that
# is asked for, a disk that fills later costs no step but ends the run with status 3, and a directory has one run.
set -euo pipefail
# Disks of a few hundred KiB need mounts of our own; where there are none, the rest is tested.
if [[ -z ${OWN_MOUNTS:-} ]] && unshare --mount mount -t tmpfs tmpfs /mnt 2>/dev/null; then
  OWN_MOUNTS=1 exec unshare --mount bash "$0" "$@"
fi
program=$(readlink -f "$1")
scratch=$(mktemp -d)
job=
trap 'if [[ -n $job ]]; then kill $(pgrep -P "$job") "$job" 2>/dev/null || true; fi; rm -rf "$scratch" 2>/dev/null || true' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
mlp='mlp(features=64, width=64, layers=2, classes=8)'    # about 65 KiB a checkpoint, 28 KiB of weights

fail() { echo "FAILED: $1"; tail -n 30 out; exit 1; }
says() { grep -qF -- "$1" out || fail "it does not say: $1"; }
train() { # ranks, arguments; sets status
  local n=$1 start=(); shift
  ((n == 1)) || start=("${mpirun[@]}" -n "$n")
  status=0
  "${start[@]}" "$program" train --model "$mlp" --strategy ddp --batch-size 2 --eval-batches 0 "$@" >out 2>&1 || status=$?
}
refuses() { # words, then arguments: one line, status 2, before the first step
  local words=$1; shift
  train "$ranks" --steps 3 "$@"
  [[ $status == 2 ]] || fail "$*: exit status $status instead of 2"
  [[ $(grep -c '^shardmark: ' out) == 1 ]] || fail "$*: not one line"
  says "$words"
  if grep -q '^ *1 ' out; then fail "it trained before it refused $*"; fi
}

# Places that cannot be written.
touch file
ranks=2
refuses 'the directory file/such cannot be made (Not a directory)' --save-weights file/such/w.safetensors
refuses 'cannot make the directory file/run: Not a directory' --checkpoint file/run
ranks=1
refuses 'the directory file cannot be made (Not a directory)' --save-weights file/w.safetensors
refuses 'cannot make the directory file: Not a directory' --checkpoint file
refuses 'is a folder, not a file' --save-weights .
refuses 'is a folder, not a file' --save-weights . --overwrite
if [[ $(id -u) != 0 ]]; then
  mkdir -m 555 closed
  refuses 'the directory closed cannot be written' --checkpoint closed
  refuses 'the directory closed cannot be written' --save-weights closed/w.safetensors
fi

# A file is replaced when that is asked for; what is no regular file never is.
train 1 --steps 1 --save-weights w.safetensors
[[ $status == 0 ]] || fail "weights"
cp w.safetensors before
refuses 'w.safetensors exists; name another place, or replace it with --overwrite' --save-weights w.safetensors
cmp -s w.safetensors before || fail "a refused run changed the weights"
ln -s w.safetensors link
train 1 --steps 2 --save-weights link --overwrite
[[ $status == 0 && -L link ]] || fail "a link to weights is followed"
if cmp -s w.safetensors before; then fail "--overwrite did not replace the weights"; fi
mkfifo pipe
refuses 'is not a regular file' --save-weights pipe --overwrite
refuses 'is not a regular file' --save-weights /dev/null --overwrite
refuses 'is not a regular file' --save-weights /dev/null
[[ -c /dev/null && -p pipe ]] || fail "a device or a pipe was replaced"

# The ranks' files may be no longer than 50 KiB: the weights find room, checkpoints do not. Over TCP, because Open MPI's shared
# memory is files as well. All steps are done, and the end tells once what is not there.
limited() {
  local kib=$1; shift
  status=0
  "${mpirun[@]}" --mca btl self,tcp -n 2 bash -c 'ulimit -f "$1"; shift; exec "$@"' - "$kib" "$program" train --model "$mlp" \
    --strategy fsdp --batch-size 2 --eval-batches 0 "$@" >out 2>&1 || status=$?
}
limited 50 --steps 3 --checkpoint never --checkpoint-every 1 --save-weights small.safetensors
[[ $status == 3 ]] || fail "checkpoints that were not written: exit status $status instead of 3"
says 'failed: 3 of 3 checkpoints were not written, the last of them at step 3: cannot write never/step-000000003.safetensors'
grep -q '^ *3 ' out || fail "it did not train to its end"
[[ $(grep -c 'shardmark: failed' out) == 1 && -z $(ls never) && -s small.safetensors ]] || fail "what is left: $(ls never)"
limited 20 --steps 2 --save-weights large.safetensors
[[ $status == 3 && $(ls large* 2>/dev/null) == '' ]] || fail "weights that were not written: exit status $status instead of 3"
says 'failed: the weights were not written: cannot write large.safetensors'

# One run in a directory at a time; what a killed run left half written goes with the next.
train 1 --steps 2 --checkpoint mine
touch mine/step-000000009.safetensors.node.17.tmp mine/notes.tmp
flock mine sleep 60 &
job=$!
for _ in $(seq 50); do flock --nonblock mine true || break; sleep 0.1; done
refuses 'another run writes its checkpoints to mine; wait for its end, or choose another directory' --checkpoint mine --resume
kill "$(pgrep -P "$job")" "$job" 2>/dev/null || true
wait "$job" || true
job=
train 1 --steps 3 --checkpoint mine --resume
[[ $status == 0 && $(ls mine) == $'notes.tmp\nstep-000000002.safetensors\nstep-000000003.safetensors' ]] || fail "left: $(ls mine)"

# A run that is over: there is nothing to do, but its weights can still be written.
refuses 'the checkpoint is at step 3, and the run ends at step 2: nothing to do; give --steps above 3' --checkpoint mine --resume --steps 2
train 1 --steps 3 --checkpoint mine --resume
[[ $status == 2 ]] || fail "a run that is over: exit status $status instead of 2"
says 'nothing to do; give --steps above 3'
train 1 --steps 3 --checkpoint mine --resume --save-weights late.safetensors
[[ $status == 0 && -s late.safetensors ]] || fail "the weights of a run that is over"

# Small disks.
if [[ -n ${OWN_MOUNTS:-} ]]; then
  mkdir disk
  mount -t tmpfs -o size=160k tmpfs disk
  refuses '--checkpoint: the checkpoints need' --checkpoint disk/run --checkpoint-every 1    # three at once
  train 2 --steps 3 --checkpoint disk/run --save-weights disk/w.safetensors
  [[ $status == 0 ]] || fail "one checkpoint and the weights fit"
  rm disk/w.safetensors
  refuses '--save-weights: the weights need' --save-weights disk/w.safetensors --model 'mlp(features=64, width=512, layers=2, classes=8)'
  # It fills while the run goes on: the checkpoints from before stay, and the run can be gone on from there.
  rm -r disk/run
  mount -o remount,size=2m disk
  train 2 --steps 100000 --checkpoint "$scratch/disk/run" --checkpoint-every 1 &
  job=$!
  for _ in $(seq 300); do compgen -G 'disk/run/step-*' >/dev/null && break; sleep 0.1; done
  { cat /dev/zero >disk/full; } 2>/dev/null || true
  for _ in $(seq 300); do grep -q 'was not written' out && break; sleep 0.1; done
  says 'was not written, earlier ones stay'
  pids=$(pgrep -f "$scratch/disk/run" | while read -r pid; do [[ $(readlink "/proc/$pid/exe") != "$program-torch" ]] || echo "$pid"; done)
  kill -TERM "${pids%%$'\n'*}"
  wait "$job" || true
  job=
  says 'checkpoints were not written'
  says 'No space left on device'
  rm disk/full
  newest=$(ls disk/run | tail -n 1 | sed 's/step-0*\([0-9]*\).*/\1/')
  train 1 --steps $((newest + 1)) --batch-size 4 --checkpoint disk/run --resume
  [[ $status == 0 ]] || fail "the checkpoints on a disk that was full"
  umount disk
fi
echo ok
