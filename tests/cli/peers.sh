#!/usr/bin/env bash
# NEEDS torch
# make peers in small: one launch of every contender on 2 CPU ranks; each peer has a row, and its losses are ours.
set -euo pipefail
program=$(readlink -f "$1")
python=$PWD/.venv/bin/python
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; cat "$scratch/out" "$scratch/err"; exit 1; }
peers() {
  "$python" suites/peers/peers.py --device cpu --program "$program" --python "$python" --ranks 2 --launches 1 --steps 2 --warmup 1 \
    --output "$scratch/peers.json" "$@" >"$scratch/out" 2>"$scratch/err"
}

# Without torch.compile, which compiles for a minute. Width 8: PyTorch's channels_last convolutions of 4 channels damage their heap on
# CPUs without AVX-512.
peers --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' 'resnet(width=8,image=16):4' --bytes 4096 65536 \
  --only single ddp fsdp zero3 LibTorch PyTorch || fail "it found losses that differ, or one of ours failed"
for row in single ddp fsdp zero3 PyTorch 'PyTorch DDP' 'PyTorch FSDP2' 'plain LibTorch'; do
  [[ $(grep -cE "^$row  " "$scratch/out") -ge 2 ]] || fail "no row '$row' of each model"
done
for row in shardmark 'torch.distributed, gloo' MPI_Allreduce nccl-tests OSU; do
  grep -q "^$row " "$scratch/out" || fail "no row '$row' of the all-reduces"
done
# PyTorch, DDP with ddp, FSDP2 with fsdp and zero3, and plain LibTorch, of two models.
[[ $(grep -cE '^(PyTorch|plain LibTorch).* agree, ' "$scratch/out") == 10 ]] || fail "10 peers whose losses agree"
grep -q '^MPI_Allreduce  *[0-9]' "$scratch/out" || fail "MPI_Allreduce was not measured"
"$python" - "$scratch/peers.json" <<'PYTHON' || fail "the file lacks something"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert all(len(row["launches"]) == 1 and row["command"] for row in rows if not row["note"].startswith("not measured")), rows
assert {row["part"] for row in rows} > {"all-reduce"}
PYTHON

# A peer whose weights are others' is found out.
sed 's|if args.weights:|if False:|' suites/peers/train_peer.py >"$scratch/train_peer.py"
cp suites/peers/{peers,models,samples,all_reduce_peer}.py "$scratch"
"$python" "$scratch/peers.py" --device cpu --program "$program" --python "$python" --ranks 1 --launches 1 --steps 3 --warmup 1 --bytes \
  --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' --only 'PyTorch DDP' --output "$scratch/wrong.json" \
  >"$scratch/out" 2>"$scratch/err" && fail "other weights went unnoticed"
grep -q 'DIFFER' "$scratch/out" || fail "it does not say that losses differ"

# A peer that crashes is a row that says so, beside ours and the others.
echo 'import os; os.abort()' >"$scratch/train_peer.py"
"$python" "$scratch/peers.py" --device cpu --program "$program" --python "$python" --ranks 2 --launches 1 --steps 1 --warmup 1 --bytes \
  --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' --only 'PyTorch DDP' PyTorch --output "$scratch/crash.json" \
  >"$scratch/out" 2>"$scratch/err" || fail "a peer's crash fails the comparison"
for row in PyTorch 'PyTorch DDP'; do
  grep -qE "^$row  +failed: .*ended by SIGABRT" "$scratch/out" || fail "the row of $row does not say how it ended"
done
grep -qE '^ddp  +[0-9]' "$scratch/out" || fail "ours lacks its row"
echo "peers: every peer has its row, and its losses are ours"
