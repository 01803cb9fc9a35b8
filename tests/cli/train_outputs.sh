#!/usr/bin/env bash
# NEEDS torch
# What shardmark train writes: places that are not writable are refused before the first step, a file is replaced only
# on request, a disk that fills up later costs no step but ends the run with status 3, and only one run uses a
# directory.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
with_own_mounts
# A checkpoint has about 65 KiB, and the weights have 28 KiB.
common=(--model 'mlp(features=64, width=64, layers=2, classes=8)' --strategy ddp --batch-size 2 --set eval_batches=0)

# Places that are not writable.
touch file
ranks=2 refuses 'the directory file/such cannot be made (Not a directory)' --save-weights file/such/w.safetensors
ranks=2 refuses 'cannot make the directory file/run: Not a directory' --checkpoint file/run
refuses 'the directory file cannot be made (Not a directory)' --save-weights file/w.safetensors
refuses 'cannot make the directory file: Not a directory' --checkpoint file
refuses 'is a folder, not a file' --save-weights .
refuses 'is a folder, not a file' --save-weights . --overwrite
if [[ $(id -u) != 0 ]]; then
  mkdir -m 555 closed
  refuses 'the directory closed cannot be written' --checkpoint closed
  refuses 'the directory closed cannot be written' --save-weights closed/w.safetensors
fi

# A file is replaced on request, but only if it is a regular file.
train 1 0 --steps 1 --save-weights w.safetensors
cp w.safetensors before
refuses 'w.safetensors exists; name another place, or replace it with --overwrite' --save-weights w.safetensors
cmp -s w.safetensors before || fail "a refused run changed the weights"
ln -s w.safetensors link
train 1 0 --steps 2 --save-weights link --overwrite
[[ -L link ]] || fail "a link to weights is followed"
if cmp -s w.safetensors before; then fail "--overwrite did not replace the weights"; fi
mkfifo pipe
refuses 'is not a regular file' --save-weights pipe --overwrite
refuses 'is not a regular file' --save-weights /dev/null --overwrite
refuses 'is not a regular file' --save-weights /dev/null
[[ -c /dev/null && -p pipe ]] || fail "a device or a pipe was replaced"

# The ranks' files may have at most 50 KiB, which is enough for the weights but not for checkpoints. The ranks use TCP,
# because Open MPI's shared memory also consists of files. All steps are run, and the end of the run says once what is
# missing.
limited() {
  local kib=$1; shift
  status=0
  "${mpirun[@]}" --mca btl self,tcp --mca btl_tcp_if_include lo -n 2 bash -c 'ulimit -f "$1"; shift; exec "$@"' - "$kib" "$program" train "${common[@]}" \
    --strategy fsdp "$@" >out 2>&1 || status=$?
}
limited 50 --steps 3 --checkpoint never --checkpoint-every 1 --save-weights small.safetensors
[[ $status == 3 ]] || fail "checkpoints that were not written: exit status $status instead of 3"
says 'failed: 3 of 3 checkpoints were not written, the last of them at step 3: cannot write never/step-000000003.safetensors'
grep -q '^ *3 ' out || fail "it did not train to its end"
[[ $(grep -c 'shardmark: failed' out) == 1 && -z $(ls never) && -s small.safetensors ]] || fail "what is left: $(ls never)"
limited 20 --steps 2 --save-weights large.safetensors
[[ $status == 3 && $(ls large* 2>/dev/null) == '' ]] || fail "weights that were not written: exit status $status instead of 3"
says 'failed: the weights were not written: cannot write large.safetensors'

# Only one run at a time uses a directory. Files that a killed run left incomplete are removed by the next run.
train 1 0 --steps 2 --checkpoint mine
touch mine/step-000000009.safetensors.node.17.tmp mine/notes.tmp
exec 9<mine
flock 9    # held until descriptor 9 is closed, however long the run takes
refuses 'another run writes its checkpoints to mine; wait for its end, or choose another directory' --checkpoint mine --resume 9<&-
exec 9<&-
train 1 0 --steps 3 --checkpoint mine --resume
[[ $(ls mine) == $'notes.tmp\nstep-000000002.safetensors\nstep-000000003.safetensors' ]] || fail "left: $(ls mine)"

# If a run is already finished, there is nothing to do, but its weights can still be written.
refuses 'the checkpoint is at step 3, and the run ends at step 2: nothing to do; give --steps above 3' --checkpoint mine --resume --steps 2
refuses 'nothing to do; give --steps above 3' --checkpoint mine --resume
train 1 0 --steps 3 --checkpoint mine --resume --save-weights late.safetensors
[[ -s late.safetensors ]] || fail "the weights of a run that is over"

# Small disks.
if [[ -n ${OWN_MOUNTS:-} ]]; then
  mkdir disk
  mount -t tmpfs -o size=160k tmpfs disk
  refuses '--checkpoint: the checkpoints need' --checkpoint disk/run --checkpoint-every 1    # there may be three at the same time
  train 2 0 --steps 3 --checkpoint disk/run --save-weights disk/w.safetensors
  rm disk/w.safetensors
  refuses '--save-weights: the weights need' --save-weights disk/w.safetensors --model 'mlp(features=64, width=512, layers=2, classes=8)'
  # The disk fills up during the run. Earlier checkpoints stay, and the run can be resumed from them.
  rm -r disk/run
  mount -o remount,size=2m disk
  trains 2 --steps 100000 --checkpoint disk/run --checkpoint-every 1
  wait_for 300 "a checkpoint" compgen -G 'disk/run/step-*'
  { cat /dev/zero >disk/full; } 2>/dev/null || true
  wait_for 300 "a checkpoint that is not written" grep -q 'was not written' out
  says 'was not written, earlier ones stay'
  kill -TERM "$(ours | sed -n 1p)"
  ends
  says 'checkpoints were not written'
  says 'No space left on device'
  rm disk/full
  newest=$(ls disk/run | tail -n 1 | sed 's/step-0*\([0-9]*\).*/\1/')
  train 1 0 --steps $((newest + 1)) --batch-size 4 --checkpoint disk/run --resume
  umount disk
fi
echo ok
