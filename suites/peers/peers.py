#!/usr/bin/env python3
"""Measures shardmark beside its peers: the same model, data, weights, optimizer, precision and threads, in turns.

    make peers [RANKS=2] [LAUNCHES=5] [ARGS="--models 'resnet(width=16):16'"]

Every launch starts each contender once, in an order that rotates. A ratio is our time / the peer's of one launch;
the table shows the geometric mean over launches with a 95 % t-interval, so launches are the unit. The first losses of
each peer must be those of our strategy. All of it goes to results/peers-NNNN.json.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parent.parent
COMPARED = 4  # number of first losses; later ones diverge by rounding, which batch norm amplifies
# 97.5 % quantiles of Student's t distribution for 1, 2, 3, ... degrees of freedom. For more, the last one is used,
# which is slightly too wide.
T = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gpus = len(list(pathlib.Path("/dev").glob("nvidia[0-9]*")))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if gpus else "cpu")
    parser.add_argument("--ranks", type=int, default=gpus or 2)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--steps", type=int, help="timed ones of a launch (default: 12, on GPUs 30)")
    parser.add_argument("--warmup", type=int, help="steps before those (default: 4, on GPUs 10)")
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="default: fp32, on GPUs bf16")
    parser.add_argument("--models", nargs="+", metavar="MODEL:BATCH", help='such as "gpt2(vocabulary=50304):16" (per rank)')
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders whose name has one of these words")
    parser.add_argument("--bytes", type=int, nargs="*", default=[4096, 1 << 20, 16 << 20], help="of the all-reduces; none: skip")
    parser.add_argument("--program", default=str(HOME / "build/shardmark"))
    parser.add_argument("--python", default=next((str(path) for path in [HOME / ".venv/bin/python"] if path.exists()), "python3"))
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--output", help="default: results/peers-NNNN.json, numbered")
    args = parser.parse_args()
    cuda = args.device == "cuda"
    args.steps = args.steps or (30 if cuda else 12)
    args.warmup = args.warmup or (10 if cuda else 4)
    args.precision = args.precision or ("bf16" if cuda else "fp32")
    args.models = args.models or (
        ["gpt2:16", "gpt2(vocabulary=50304):16", "llama(sequence=2048):4", "resnet(layers=50):64"] if cuda else
        ["gpt2(layers=4,width=256,heads=4,sequence=128,vocabulary=8192):4",
         "llama(layers=4,width=256,heads=8,kv_heads=2,inner=704,sequence=128,vocabulary=8192):4", "resnet(width=16):16"])
    return args


class Contender:
    """Its name, how it starts, ours that it is compared with, and what its launches gave (None: failed)."""

    def __init__(self, name, ranks, command, bases=(), note="", parse=None):
        self.name, self.ranks, self.command, self.bases, self.note = name, ranks, command, bases, note
        self.parse = parse or (lambda text: json.loads(text.splitlines()[-1]))
        self.part, self.runs, self.failure = "all-reduce", [], ""

    def launch(self, args):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads), MASTER_PORT=str(port),
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        mpirun = [args.mpirun, "--oversubscribe", "--bind-to", "none", "-n", str(self.ranks)] if self.ranks > 1 else []
        try:
            done = subprocess.run(["timeout", "900", *mpirun, *self.command], env=environment, capture_output=True, text=True)
            ended_by = -done.returncode if done.returncode < 0 else done.returncode - 128  # by `timeout`, or by mpirun
            if ended_by in signal.valid_signals():
                raise RuntimeError(f"ended by {signal.Signals(ended_by).name}")
            if done.returncode != 0:
                words = [line for line in done.stderr.splitlines() if "Error" in line or line.startswith("shardmark:")]
                raise RuntimeError((words or done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1][:200])
            self.runs.append(self.parse(done.stdout))
        except Exception as error:  # a peer that fails must not affect the other rows
            self.failure = f"{type(error).__name__}: {error}"
            self.runs.append(None)
        print(f"  {self.name}: {self.failure or 'done'}", file=sys.stderr, flush=True)


def exported(args, study):
    """Ours from the study that the run wrote: the same numbers as train_peer.py's."""
    def parse(_):
        export = subprocess.run([args.program, "report", study, "--raw", "--json"], capture_output=True, text=True, check=True)
        os.unlink(study)
        document = json.loads(export.stdout)
        point = document["points"][0]
        steps = [max(of_ranks) for of_ranks in zip(*point["samples"]["step"])][args.warmup:-1]
        return {"step_s": statistics.median(steps), "steps_s": steps, "losses": point["samples"]["loss"][0][:8],
                "peak_bytes": point["peak_bytes"], "revision": document["environment"]["revision"],
                "versions": document["environment"]["versions"], "device": document["environment"]["devices"][0]}
    return parse


def beside(args, name):
    """A program that was built beside ours."""
    return str(pathlib.Path(args.program).resolve().parent / name)


def contenders(args, model, batch, folder):
    steps = args.warmup + args.steps + 1
    weights = f"{folder}/weights.safetensors"

    def train(strategy, *flags):
        return [args.program, "train", "--device", args.device, "--threads", str(args.threads), "--model", model, "--batch-size",
                batch, "--precision", args.precision, "--strategy", strategy, "--set", "eval_batches=0", f"log_every={steps}", *flags]

    first = Contender("weights", 1, train("single", "--steps", "1", "--lr", "0", "--save-weights", weights, "--overwrite"),
                      parse=lambda text: {})
    first.launch(args)
    if first.failure:
        sys.exit(f"peers: no initial weights: {first.failure}")

    def ours(name, strategy, ranks, *flags):
        study = f"{folder}/{name}.h5"
        return Contender(name, ranks, train(strategy, "--steps", str(steps), "--weights", weights, "-o", study, *flags), parse=exported(args, study))

    def peer(name, framework, bases, precision=args.precision, note=""):
        return Contender(name, bases[0].ranks, [args.python, str(HERE / "train_peer.py"), "--framework", framework, "--model", model,
                         "--precision", precision, "--batch-size", batch, "--steps", str(args.steps), "--warmup", str(args.warmup),
                         "--threads", str(args.threads), "--device", args.device, "--weights", weights], bases, note)

    single, ddp, fsdp, zero3 = ours("single", "single", 1), *(ours(name, name, args.ranks) for name in ("ddp", "fsdp", "zero3"))
    mixed = args.precision == "bf16"
    alone = [single]  # our contenders on one rank
    if args.device == "cuda":
        kernels = ["--set", "kernels=fused"] if mixed else []
        if kernels:
            alone.append(ours("single, fused", "single", 1, *kernels))
        alone.append(ours("single, graphs", "single", 1, *kernels, "--set", "graph=true"))
    autocast = "autocast" if mixed else ""
    loop = beside(args, "shardmark_libtorch_loop")
    command = [loop, model, batch, args.precision, args.device, str(args.warmup), str(args.steps)]
    rows = [*alone, ddp, fsdp, zero3,
            Contender("plain LibTorch", 1, command, alone, "" if os.access(loop, os.X_OK) else f"not measured: no {loop}"),
            peer("PyTorch", "plain", alone, note=autocast), peer("torch.compile", "compile", alone, note=autocast)]
    if mixed:
        rows += [peer("PyTorch, bf16 copy", "plain", alone, "bf16-copy", "as ours"),
                 peer("torch.compile, bf16 copy", "compile", alone, "bf16-copy", "as ours")]
    rows += [peer("PyTorch DDP", "ddp", [ddp], note=autocast),
             peer("PyTorch FSDP2", "fsdp2", [fsdp, zero3], note="bf16 policy, fp32 reductions" if mixed else "")]
    for row in rows:
        row.part = f"step of {model}, batch {batch}"
    picked = [row for row in rows if not args.only or any(word in row.name for word in args.only)]
    return [row for row in rows if row in picked or any(row in other.bases for other in picked)]


def columns_of(text, size, seconds, scale):
    """Seconds by bytes, from these columns of a table's lines that begin with a number."""
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    return {"seconds": {row[size]: float(row[seconds]) * scale for row in rows}}


def all_reduces(args):
    if args.ranks == 1 or not args.bytes:
        print(f"all-reduce: not measured ({'one rank has nobody to reduce with' if args.bytes else 'no sizes'})\n")
        return []
    sizes = [str(size) for size in args.bytes]
    span = ["-b", sizes[0], "-e", sizes[-1], "-f", "2", "-w", "5"]
    ours = Contender("shardmark", args.ranks, [args.program, "collective", "all_reduce", "--device", args.device, "-c", "0", *span],
                     parse=lambda text: columns_of(text, 0, 9, 1e-6))
    rows = [ours, Contender(f"torch.distributed, {'NCCL' if args.device == 'cuda' else 'gloo'}", args.ranks,
                            [args.python, str(HERE / "all_reduce_peer.py"), "--device", args.device, "--bytes", *sizes], [ours])]
    for name, program, flags, device, columns in [
            ("MPI_Allreduce", beside(args, "shardmark_mpi_allreduce"), ["20", *sizes], "cpu", (0, 1, 1)),
            ("nccl-tests", "all_reduce_perf", span, "cuda", (0, 9, 1e-6)),
            ("OSU", "osu_allreduce", ["-m", f"{sizes[0]}:{sizes[-1]}", "-i", "20", "-x", "5"], "cpu", (0, 1, 1e-6))]:
        note = f"for {device} only" if device != args.device else "" if shutil.which(program) else f"{program} was not found"
        rows.append(Contender(name, args.ranks, [program, *flags], [ours], note and f"not measured: {note}",
                              lambda text, columns=columns: columns_of(text, *columns)))
    return rows


def in_turns(args, rows):
    rows = [row for row in rows if not row.note.startswith("not measured")]
    for launch in range(args.launches):
        print(f"launch {launch + 1} of {args.launches}", file=sys.stderr)
        for i in range(len(rows)):
            rows[(i + launch) % len(rows)].launch(args)


def ratio(ours, peers):
    """Geometric mean of ours / the peer's, its interval as text; None where no launch has both."""
    logs = [math.log(a / b) for a, b in zip(ours, peers) if a is not None and b is not None]
    if not logs:
        return None, "-"
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), "-"
    half = T[min(len(logs) - 2, len(T) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), f"{math.exp(mean - half):.3f} .. {math.exp(mean + half):.3f}"


def agreement(args, row, base):
    """Whether the first losses of every launch are ours, and their largest relative difference."""
    differences = [abs(a - b) / abs(a) for ours, theirs in zip(base.runs, row.runs) if ours and theirs
                   for a, b in list(zip(ours["losses"], theirs["losses"]))[:COMPARED]]
    if not differences:
        return "not compared"
    allowed = 2e-2 if args.precision == "bf16" else 1e-3 if "resnet" in row.part else 1e-4
    agree = all(difference <= allowed for difference in differences)
    return f"{'agree' if agree else 'DIFFER'}, {max(differences):.0e}"


def step_table(args, model, batch, rows):
    print(f"\n-> {model}, batch {batch} per rank, {args.precision}, {args.ranks} ranks of {args.threads} threads "
          f"(of single and its peers: 1 rank), {args.device}, {args.launches} launches, AdamW\n")
    print(f"{'':26} {'step':>9} {'peak':>8} {'ours':>14} {'ours /':>8} {'95 % interval':>16} {'losses':>15}")
    print(f"{'':26} {'ms':>9} {'GiB':>8} {'':14} {'peer':>8}")
    for row in rows:
        times = [run and run["step_s"] for run in row.runs]
        if not any(times):
            print(f"{row.name:26} {row.note if not row.runs else 'failed: ' + row.failure}")
            continue
        step = statistics.median(time for time in times if time)
        peak = max(run["peak_bytes"] or 0 for run in row.runs if run) if args.device == "cuda" else 0
        line = f"{row.name:26} {1000 * step:9.2f} {f'{peak / 2**30:.2f}' if peak else '-':>8}"
        for base in row.bases:
            value, interval = ratio([run and run["step_s"] for run in base.runs], times)
            print(f"{line} {base.name:>14} {f'{value:.3f}' if value else '-':>8} {interval:>16} {agreement(args, row, base):>15}  "
                  f"{row.note}".rstrip())
        if not row.bases:
            print(line)


def collective_table(args, rows):
    if not rows:
        return
    print(f"\n-> all-reduce of floats, in place, {args.ranks} ranks, {args.device}, {args.launches} launches\n")
    print(f"{'':26} {'bytes':>10} {'time us':>10} {'ours /':>8} {'95 % interval':>16}")
    for row in rows:
        if not any(row.runs):
            print(f"{row.name:26} {row.note or 'failed: ' + row.failure}")
            continue
        for size in map(str, args.bytes):
            def of(contender):
                return [run and run["seconds"].get(size) for run in contender.runs]
            times = of(row)
            value, interval = ratio(of(row.bases[0]), times) if row.bases else (None, "")
            if any(times):
                middle = statistics.median(time for time in times if time)
                print(f"{row.name:26} {size:>10} {1e6 * middle:10.1f} {f'{value:.3f}' if value else '':>8} {interval:>16}".rstrip())


def write(args, rows):
    if not args.output:
        (HOME / "results").mkdir(exist_ok=True)
        number = 1 + max((int(path.stem[6:]) for path in (HOME / "results").glob("peers-[0-9]*.json")), default=0)
        args.output = str(HOME / f"results/peers-{number:04}.json")
    described = [{"part": row.part, "name": row.name, "note": row.note, "ranks": row.ranks, "command": row.command,
                  "compared_with": {base.name: agreement(args, row, base) if "step" in row.part else "" for base in row.bases},
                  "failure": row.failure, "launches": row.runs} for row in rows]
    with open(args.output, "w") as file:
        json.dump({"command": sys.argv, "arguments": vars(args), "host": socket.gethostname(),
                   "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rows": described}, file, indent=1)
    print(f"\nwritten: {args.output}")


def main():
    args = arguments()
    every = []
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        for model, _, batch in (text.rpartition(":") for text in args.models):
            rows = contenders(args, model, batch, folder)
            in_turns(args, rows)
            step_table(args, model, batch, rows)
            every += rows
    differ = any("DIFFER" in agreement(args, row, base) for row in every for base in row.bases)
    rows = all_reduces(args)
    in_turns(args, rows)
    collective_table(args, rows)
    write(args, every + rows)
    return int(differ or any(row.failure for row in every + rows if not row.bases))  # the row of a failed peer says so


if __name__ == "__main__":
    sys.exit(main())
