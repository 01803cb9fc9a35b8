"""Orders of torch's pipeline schedules, for tests/unit/pipeline_orders_test.cpp: python make.py, with torch 2.11.

A line of a file is a rank's order in torch's words: part of the model, F (forward), B (backward), I (backward for the
input) or W (for the weights), micro-batch. GPipe and 1F1B are run, on a stage that writes down what it is told: the
orders that they print (_get_pipeline_order) begin the last rank of 1F1B at micro-batch 1. The others are lists in torch too.
"""
import pathlib

from torch.distributed.pipelining import schedules as torch_schedules


class RecordingStage:
    def __init__(self, index):
        self.stage_index, self.order = index, []

    def forward_one_chunk(self, micro_batch, *_, **__):
        self.order.append(f"{self.stage_index}F{micro_batch}")

    def backward_one_chunk(self, micro_batch, **_):
        self.order.append(f"{self.stage_index}B{micro_batch}")

    def perform_reduce_grad(self, _):
        pass

    def get_fwd_recv_ops(self, _):
        return []

    get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = get_fwd_recv_ops


def run(cls, ranks, micro_batches, rank):
    schedule = cls.__new__(cls)
    schedule._stage, schedule._num_stages = RecordingStage(rank), ranks
    schedule._n_microbatches, schedule.scale_grads = micro_batches, False
    inputs = [()] * micro_batches, [{}] * micro_batches
    schedule._check_inputs = lambda *_: inputs
    for name in ("_initialize_stage", "_maybe_compute_loss", "_maybe_get_loss", "_update_losses"):
        setattr(schedule, name, lambda *_: None)
    schedule._step_microbatches()
    return schedule._stage.order


def listed(cls, ranks, micro_batches, rank, chunks):
    schedule = cls.__new__(cls)
    schedule.pp_group_size, schedule.n_local_stages, schedule._n_microbatches = ranks, chunks, micro_batches
    rounds = max(1, micro_batches // ranks)
    if micro_batches % rounds:
        return None  # PyTorch refuses this layout
    schedule.number_of_rounds, schedule.microbatches_per_round = rounds, micro_batches // rounds
    return [str(action) for action in schedule._calculate_single_rank_operations(rank) if action is not None]


def listed_v(ranks, micro_batches, rank):
    schedule = torch_schedules.ScheduleZBVZeroBubble.__new__(torch_schedules.ScheduleZBVZeroBubble)
    schedule.pp_group_size, schedule.num_stages, schedule._n_microbatches = ranks, 2 * ranks, micro_batches
    return [str(action) for action in schedule._calculate_single_rank_operations(rank) if action is not None]


def write(name, order_of, all_chunks):
    lines = ["ranks,micro_batches,chunks,rank,order"]
    for ranks in (1, 2, 3, 4, 8):
        for micro_batches in (1, 2, 3, 4, 5, 6, 8, 9, 16):
            for chunks in all_chunks:
                for rank in range(ranks):
                    order = order_of(ranks, micro_batches, rank, chunks)
                    if order is not None:
                        lines.append(f"{ranks},{micro_batches},{chunks},{rank},{' '.join(order)}")
    path = pathlib.Path(__file__).with_name(name + ".csv")
    path.write_text("\n".join(lines) + "\n")
    print(path.name, len(lines), path.stat().st_size)


write("gpipe", lambda p, m, r, v: run(torch_schedules.ScheduleGPipe, p, m, r), [1])
write("1f1b", lambda p, m, r, v: run(torch_schedules.Schedule1F1B, p, m, r), [1])
write("interleaved", lambda p, m, r, v: listed(torch_schedules.ScheduleInterleaved1F1B, p, m, r, v), [2, 3])
write("zero_bubble", lambda p, m, r, v: listed(torch_schedules.ScheduleInterleavedZeroBubble, p, m, r, v), [1])
write("zero_bubble_v", lambda p, m, r, v: listed_v(p, m, r), [2])
