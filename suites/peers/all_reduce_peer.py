"""Times torch.distributed's all-reduce (gloo on the CPU, NCCL on GPUs), in place, and prints one line of JSON.

    mpirun -n 2 .venv/bin/python suites/peers/all_reduce_peer.py --bytes 4096 1048576
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bytes", type=int, nargs="+", required=True)
parser.add_argument("--iterations", type=int, default=20)
parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
args = parser.parse_args()
rank, ranks, local = (int(os.environ[f"OMPI_COMM_WORLD_{key}"]) for key in ("RANK", "SIZE", "LOCAL_RANK"))
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29578")
torch.set_num_threads(1)
cuda = args.device == "cuda"
if cuda:
    torch.cuda.set_device(local)
dist.init_process_group("nccl" if cuda else "gloo", rank=rank, world_size=ranks)
seconds = {}
for size in args.bytes:
    tensor = torch.ones(size // 4, device=args.device)
    for _ in range(5):
        dist.all_reduce(tensor)
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(args.iterations):
        dist.all_reduce(tensor)
    if cuda:
        torch.cuda.synchronize()
    slowest = torch.tensor([time.perf_counter() - begin], device=args.device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    seconds[size] = slowest.item() / args.iterations
if rank == 0:
    print(json.dumps({"seconds": seconds}), flush=True)
dist.barrier()
os._exit(0)  # as in train_peer.py
