#!/usr/bin/env bash
# NEEDS torch
# A small version of make peers: one launch of every contender on 2 CPU ranks. Each peer has a row, and its losses equal
# ours.
set -euo pipefail
program=$(readlink -f "$1")
python=$PWD/.venv/bin/python
scratch=$(mktemp -d)
server=
finish() {
  if [[ -n $server ]]; then { kill "$server"; wait "$server"; } 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap finish EXIT

fail() { echo "FAILED: $*"; cat "$scratch/out" "$scratch/err"; exit 1; }
# shellcheck source=tests/waiting.bash
source tests/waiting.bash
# To import torch and transformers takes longer than all that a peer does, so peers are forks of one process that has them.
OMP_NUM_THREADS=1 "$python" tests/cli/torch_server.py "$scratch/python" torch torch.distributed.fsdp torch.distributed.device_mesh \
  transformers.models.llama.modeling_llama >"$scratch/out" 2>"$scratch/err" &
server=$!
is_there() { [[ -x $scratch/python ]] || ! kill -0 $server; }
wait_for 600 "the modules of the peers" is_there
[[ -x $scratch/python ]] || fail "torch or transformers cannot be imported"
peers() {
  "$python" suites/peers/peers.py --device cpu --program "$program" --python "$scratch/python" --ranks 2 --launches 1 --steps 2 --warmup 1 \
    --output "$scratch/peers.json" "$@" >"$scratch/out" 2>"$scratch/err"
}

# torch.compile is left out because it compiles for a minute. ResNet has width 8, because PyTorch's channels_last
# convolutions with 4 channels corrupt the heap on CPUs without AVX-512.
peers --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' 'resnet(width=8,image=16):4' \
  'llama(layers=2,width=32,heads=4,kv_heads=2,inner=48,sequence=16,vocabulary=64,tied=false,rope_factor=8):2' --bytes 4096 65536 \
  --only single ddp fsdp zero3 LibTorch PyTorch || fail "it found losses that differ, or one of ours failed"
grep -q ' agree, ' "$scratch/out" || fail "no table of losses"
"$python" - "$scratch/peers.json" <<'PYTHON' || fail "the file lacks something"
import collections, json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert all(len(row["launches"]) == 1 and row["command"] for row in rows if not row["note"].startswith("not measured")), rows
names = collections.defaultdict(set)
for row in rows: names[row["part"]].add(row["name"])
assert names.pop("all-reduce") >= {"shardmark", "torch.distributed, gloo", "MPI_Allreduce", "nccl-tests", "OSU"}, names
assert any(row["name"] == "MPI_Allreduce" and row["launches"][0] for row in rows), "MPI_Allreduce was not measured"
ours, peers = {"single", "ddp", "fsdp", "zero3"}, {"PyTorch", "PyTorch DDP", "PyTorch FSDP2", "plain LibTorch"}
assert len(names) == 3 and all(of_model >= ours | peers for of_model in names.values()), names
# PyTorch is compared with single, DDP with ddp, FSDP2 with fsdp and zero3; and plain LibTorch.
verdicts = [verdict for row in rows if row["name"] in peers for verdict in row["compared_with"].values()]
assert sum(verdict.startswith("agree") for verdict in verdicts) == 3 * 5, verdicts
PYTHON

# A peer with different initial weights is detected.
sed 's|if args.weights:|if False:|' suites/peers/train_peer.py >"$scratch/train_peer.py"
cp suites/peers/{peers,models,samples,all_reduce_peer}.py "$scratch"
"$python" "$scratch/peers.py" --device cpu --program "$program" --python "$scratch/python" --ranks 1 --launches 1 --steps 3 --warmup 1 --bytes \
  --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' --only 'PyTorch DDP' --output "$scratch/wrong.json" \
  >"$scratch/out" 2>"$scratch/err" && fail "other weights went unnoticed"
grep -q 'DIFFER' "$scratch/out" || fail "it does not say that losses differ"

# Without the package transformers, the rows of Llama's peers say so.
echo "raise ModuleNotFoundError(\"No module named 'transformers'\")" >"$scratch/transformers.py"
"$python" "$scratch/peers.py" --device cpu --program "$program" --python "$python" --ranks 1 --launches 1 --steps 1 --warmup 1 --bytes \
  --models 'llama(layers=1,width=32,heads=4,kv_heads=2,inner=48,sequence=16,vocabulary=64):2' --only 'PyTorch DDP' \
  --output "$scratch/without.json" >"$scratch/out" 2>"$scratch/err" || fail "a missing package fails the comparison"
grep -q "^PyTorch DDP .*failed: .*No module named 'transformers'" "$scratch/out" || fail "the row does not name the missing package"

# A peer that crashes has a row that says so, and the other rows are complete.
echo 'import os; os.abort()' >"$scratch/train_peer.py"
"$python" "$scratch/peers.py" --device cpu --program "$program" --python "$python" --ranks 2 --launches 1 --steps 1 --warmup 1 --bytes \
  --models 'gpt2(layers=2,width=32,heads=2,sequence=16,vocabulary=64):2' --only 'PyTorch DDP' PyTorch --output "$scratch/crash.json" \
  >"$scratch/out" 2>"$scratch/err" || fail "a peer's crash fails the comparison"
"$python" - "$scratch/crash.json" <<'PYTHON' || fail "the rows do not say how each ended"
import json, sys
rows = {row["name"]: row for row in json.load(open(sys.argv[1]))["rows"]}
for name in ("PyTorch", "PyTorch DDP"): assert "ended by SIGABRT" in rows[name]["failure"], rows[name]
assert rows["ddp"]["launches"][0], rows["ddp"]
PYTHON
echo "peers: every peer has its row, and its losses are ours"
