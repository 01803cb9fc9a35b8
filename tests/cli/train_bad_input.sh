#!/usr/bin/env bash
# NEEDS torch
# Bad input to shardmark train: options with which no run stays finite, files that are both read and written, weights
# that are not floats, and requests for more than there is. Each gives one line and a status, and no file is lost.
# shellcheck source=tests/cli/train.bash
source "$(dirname "$0")/train.bash"
common=(--model 'mlp(features=64, width=64, layers=2, classes=8)' --strategy ddp --batch-size 2 --steps 1)

# The last step's update is looked at, too: of parameters that are not finite nothing is written, on any number of ranks.
refuses "option 'beta1' of optimizer adamw is 1; accepted: a number from 0 to 0.999999" --optimizer "adamw(beta1=1)" --save-weights w
refuses "option 'beta2' of optimizer adamw is 1" --optimizer "adamw(beta2=1)"
for n in 1 2; do
  train $n 1 --lr 1e30 --optimizer "adamw(weight_decay=1e30)" --checkpoint D --checkpoint-every 1 --save-weights w
  says 'parameters or optimizer state are not finite after step 1: they are not written'
  if grep -q 'held-out loss' out; then fail "a loss of parameters that are not finite"; fi
  [[ ! -e w && -z $(ls -A D) ]] || fail "written: $(ls -A . D)"
done
train 1 0 --checkpoint D    # the same directory can be used, because nothing was written
train 1 0 --checkpoint D --resume --steps 2

# A file is either read or written, and written only once, whatever its names.
refuses '--save-weights z.h5 is the same file as -o z.h5' -o z.h5 --save-weights z.h5
refuses '--save-weights ./z.h5 is the same file' -o z.h5 --save-weights ./z.h5
ln -s z.h5 soft.h5
refuses '--save-weights soft.h5 is the same file' -o z.h5 --save-weights soft.h5
refuses '--save-weights z.h5.journal is the same file' -o z.h5 --save-weights z.h5.journal
refuses '--trace T/steps.json is the same file as --save-weights' --trace T --save-weights T/steps.json
mkdir C
ln -s C linked
for name in C/step-000000005.safetensors linked/step-000000005.safetensors; do
  refuses "--save-weights $name would be taken for a checkpoint in --checkpoint C" --checkpoint C --save-weights "$name"
done
refuses '-o folder is the folder of --checkpoint' --checkpoint folder -o folder
printf 'model: {mlp: {features: 64}}\nseed: 7\n' >run.yaml
ln run.yaml hard.yaml
cp run.yaml kept.yaml
for name in run.yaml ./run.yaml hard.yaml; do
  refuses 'run.yaml, which is read here' run.yaml --save-weights "$name" --overwrite
done
mkdir T2 && cp run.yaml T2/steps.json
refuses 'T2/steps.json, which is read here' T2/steps.json --trace T2 --overwrite
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<256i", 20240520, 1, 4000, *[0] * 253) + bytes(8000))' >tokens.bin
cp tokens.bin kept.bin
gpt2='gpt2(layers=1, width=8, heads=1, sequence=8, vocabulary=16)'
refuses 'tokens.bin, which is read here' --model "$gpt2" --data 'tokens(files=tokens.bin)' --save-weights ./tokens.bin --overwrite
cmp -s run.yaml kept.yaml && cmp -s tokens.bin kept.bin || fail "a refused run changed what it reads"

# If a file of tokens is truncated while it is read, the run ends on all ranks with one line.
trains 2 --model "$gpt2" --data 'tokens(files=tokens.bin)' --steps 1000000
wait_for 300 "step 5" grep -q '^ *5 ' out
truncate -s 1100 tokens.bin
ends
[[ $status == 1 ]] || fail "tokens that were cut: exit status $status instead of 1"
says "'tokens.bin' had 9024 bytes when it was opened, and has been cut since"

# The same holds for a token that is not in the model's vocabulary.
cp kept.bin tokens.bin
trains 2 --model "$gpt2" --data 'tokens(files=tokens.bin)' --steps 1000000
wait_for 300 "step 5" grep -q '^ *5 ' out
head -c 8000 /dev/zero | tr '\0' '\377' | dd of=tokens.bin bs=1024 seek=1 conv=notrunc status=none
ends
[[ $status == 1 ]] || fail "a token that the model lacks: exit status $status instead of 1"
says "'tokens.bin' (llm.c's format for GPT-2's vocabulary of 50257): token 65535 at position "
says "is not in the model's vocabulary of 16"

# Weights of other types are refused before anything is set up, and so is an invalid header.
train 1 0 --save-weights w.safetensors
for type in I32 F8_E4M3; do
  python3 - "$type" <<'PYTHON'
import json, sys
data = open("w.safetensors", "rb").read()
end = 8 + int.from_bytes(data[:8], "little")
header = json.loads(data[8:end])
name = next(key for key in header if key != "__metadata__")
header[name]["dtype"] = sys.argv[1]
header.pop("__metadata__")    # and the checksum in it
text = json.dumps(header).encode()
open("other.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[end:])
PYTHON
  refuses "as $type; accepted: BF16, F16, F32, F64" --weights other.safetensors
done
python3 - <<'PYTHON'
data = bytearray(open("w.safetensors", "rb").read())
end = 8 + int.from_bytes(data[:8], "little")
import json
header = json.loads(data[8:end])
header.pop("__metadata__")    # and the checksum in it
text = json.dumps(header).encode()
data[end:end + 4] = b"\x00\x00\xc0\x7f"    # overwrites the first number
open("nan.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[end:])
PYTHON
for n in 1 2; do    # found while the weights are read, after the first lines of output
  train $n 2 --weights nan.safetensors
  says "'nan.safetensors' holds a NaN or an infinity in "
  if grep -q '^ *1 ' out; then fail "it trained with weights that hold a NaN"; fi
done
python3 -c '
import sys
text = b"{\"a\":" + b"[" * 200000 + b"]" * 200000 + b"}"
sys.stdout.buffer.write(len(text).to_bytes(8, "little") + text)' >deep.safetensors
refuses "'deep.safetensors' has a damaged header: it nests too deep" --weights deep.safetensors
echo '{"weight_map": {"layers.0.weight": "absent.safetensors"}}' >absent.index.json
refuses "'absent.index.json' names the file './absent.safetensors', which is not there" --weights absent.index.json

# Remains of the weights of a killed run are removed by the next run that writes there. A file that is being written
# stays.
left=w.safetensors.$(uname -n).17.tmp held=w.safetensors.$(uname -n).18.tmp
touch "$left" "$held"
exec 9<"$held"
flock 9    # held until descriptor 9 is closed, however long the run takes
train 1 0 --save-weights w.safetensors --overwrite 9<&-
[[ $(ls w.safetensors*) == "w.safetensors"$'\n'"$held" ]] || fail "left: $(ls w.safetensors*)"
exec 9<&-

# Refused: more threads than a processor can run, more samples than there can be, and a precision that the device lacks.
status=0
taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$program" train "${common[@]}" --threads 4096 >out 2>&1 || status=$?
[[ $status == 2 ]] || fail "4,096 threads: exit status $status instead of 2"
says 'may run on 1 processor(s), where more than 64 threads only wait for each other; give fewer'
refuses 'accepted: an integer from 1 to 1099511627776' --data 'synthetic(size=9000000000000000000)'
train 1 0 --data 'synthetic(size=1000000000000)' --batch-size 64 --device cpu --precision tf32
says '10000 held out'
[[ $(grep -c -- '--precision tf32 is the same as fp32 here: ' out) == 1 ]] || fail "tf32 on a CPU"
train 1 0 --device cpu --set eval_batches=0
if grep -q tf32 out; then fail "nobody asked for tf32"; fi
echo ok
