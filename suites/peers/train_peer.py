"""Trains GPT-2, Llama or ResNet by plain PyTorch, torch.compile, DDP or FSDP2, and prints one line of JSON.

    mpirun -n 2 .venv/bin/python suites/peers/train_peer.py --framework ddp --model "gpt2(layers=4, width=256, heads=4)"

The first batches are those of `shardmark train` with the same model and seed, the weights those of its --save-weights.
"""

import argparse
import contextlib
import json
import os
import statistics
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=["plain", "compile", "ddp", "fsdp2"], required=True)
    parser.add_argument("--model", default="gpt2", help='in shardmark\'s words: "resnet(layers=50)"')
    parser.add_argument("--precision", choices=["fp32", "bf16", "bf16-copy"], default="fp32",
                        help="bf16: autocast, of fsdp2 its MixedPrecisionPolicy; bf16-copy: a bf16 model beside fp32 "
                        "weights, as shardmark does it (plain, compile)")
    parser.add_argument("--batch-size", type=int, default=4, help="per rank")
    parser.add_argument("--steps", type=int, default=20, help="timed ones")
    parser.add_argument("--warmup", type=int, default=5, help="steps before those")
    parser.add_argument("--compared", type=int, default=8, help="first steps whose batches are shardmark's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", help="safetensors file of shardmark's to start from (default: random values)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    return parser.parse_args()


args = arguments()
rank, ranks = (int(os.environ.get(f"OMPI_COMM_WORLD_{key}", default)) for key, default in (("RANK", 0), ("SIZE", 1)))
local, locals_ = (int(os.environ.get(f"OMPI_COMM_WORLD_LOCAL_{key}", default)) for key, default in (("RANK", 0), ("SIZE", 1)))
cores = sorted(os.sched_getaffinity(0))
share = len(cores) // locals_
if share > 0:  # before torch starts threads; shardmark binds its ranks in the same way
    os.sched_setaffinity(0, cores[local * share:(local + 1) * share])

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import models  # noqa: E402
import samples  # noqa: E402

torch.set_num_threads(args.threads)
torch.backends.cudnn.benchmark = True
cuda = args.device == "cuda"
device = torch.device("cuda", local) if cuda else torch.device("cpu")
bf16 = args.precision != "fp32"


def saved_buffers(model):
    """Batch norm's statistics. Hugging Face's rotary frequencies are not among them, and stay float."""
    saved = model.state_dict()
    return [buffer for name, buffer in model.named_buffers() if name in saved]


def to_bf16(tensors):
    for tensor in tensors:
        tensor.data = tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor


def wrapped(model):
    """The model as the framework runs it."""
    if args.framework == "compile":
        return torch.compile(model)
    if args.framework == "ddp":
        return torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[local] if cuda else None, gradient_as_bucket_view=True, broadcast_buffers=False)
    if args.framework == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        mesh = init_device_mesh(args.device, (ranks,))
        policy = (MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if bf16
                  else MixedPrecisionPolicy())
        if bf16:  # the policy does not convert buffers, but batch norm needs its statistics in the type of its weights
            to_bf16(saved_buffers(model))
        for part in model.shards():
            fully_shard(part, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


class Update:
    """AdamW, fused; with bf16-copy on fp32 weights of its own, which the model's are a copy of."""

    def __init__(self, masters, copies):
        self.masters, self.copies = masters, copies
        self.adamw = torch.optim.AdamW(masters, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)

    def __call__(self):
        if self.copies:
            gradients = [copy.grad for copy in self.copies]
            torch._foreach_copy_([master.grad for master in self.masters], gradients)
        self.adamw.step()
        if self.copies:
            with torch.no_grad():
                torch._foreach_copy_(self.copies, self.masters)
            for copy in self.copies:
                copy.grad = None
        else:
            self.adamw.zero_grad(set_to_none=True)


def build():
    torch.manual_seed(args.seed)
    model = models.make_model(args.model)
    data = model.make_data(args.seed)
    if args.weights:
        models.load_weights(model, args.weights)
    images = isinstance(model, models.ResNet)
    # FSDP2 only accepts contiguous parameters. So only the images are channels_last, and the convolutions follow their
    # format.
    last = images and args.framework != "fsdp2"
    model.to(device, memory_format=torch.channels_last if last else torch.preserve_format)
    masters, copies = [], []
    if args.precision == "bf16-copy":
        masters = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
        for master in masters:
            master.grad = torch.zeros_like(master)
        copies = list(model.parameters())
        to_bf16(copies + saved_buffers(model))
    runs = wrapped(model)
    update = Update(masters or list(model.parameters()), copies)
    batches = []
    for step in range(args.compared):
        inputs, targets = data.batch(samples.drawn(step, ranks, rank, args.batch_size, args.seed))
        if images:
            inputs = inputs.to(torch.bfloat16 if bf16 else torch.float32, memory_format=torch.channels_last)
        batches.append([tensor.pin_memory() if cuda else tensor for tensor in (inputs, targets)])
    return runs, update, batches


def train(model, update, batches):
    """Losses and seconds of all steps on this rank. Nothing waits for the GPU between the first and the last."""
    autocast = (torch.autocast(args.device, torch.bfloat16) if args.precision == "bf16" and args.framework != "fsdp2"
                else contextlib.nullcontext())
    losses, marks = [], []

    def mark():
        if cuda:
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        else:
            marks.append(time.perf_counter())

    for step in range(args.warmup + args.steps + 1):
        mark()
        inputs, targets = (tensor.to(device, non_blocking=True) for tensor in batches[step % len(batches)])
        with autocast:
            loss = model(inputs, targets)
        loss.backward()
        update()
        losses.append(loss.detach())
    mark()
    if cuda:
        torch.cuda.synchronize()
        seconds = [before.elapsed_time(after) / 1000 for before, after in zip(marks, marks[1:])]
    else:
        seconds = [after - before for before, after in zip(marks, marks[1:])]
    return torch.stack(losses).tolist(), seconds


def main():
    if cuda:
        torch.cuda.set_device(device)
    several = ranks > 1 or args.framework in ("ddp", "fsdp2")
    if several:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29577")
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", rank=rank, world_size=ranks)
    model, update, batches = build()
    if several:
        dist.barrier()
    losses, seconds = train(model, update, batches)
    everyone = [None] * ranks
    if several:
        dist.all_gather_object(everyone, (losses, seconds))
    else:
        everyone = [(losses, seconds)]
    if rank == 0:
        steps = [max(of_ranks) for of_ranks in zip(*(times for _, times in everyone))][args.warmup:-1]
        print(json.dumps({
            "step_s": statistics.median(steps),
            "steps_s": steps,
            "losses": [statistics.fmean(of_ranks) for of_ranks in zip(*(own for own, _ in everyone))][:args.compared],
            "peak_bytes": torch.cuda.max_memory_allocated() if cuda else None,
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if cuda else "cpu",
        }), flush=True)
    if several:  # threads of gloo may still run when Python destroys them at exit, which would abort the process
        dist.barrier()
        os._exit(0)


if __name__ == "__main__":
    main()
