// The table of series: every kind of raw samples that a record may hold. The columns of a record are in
// fields.h.
#pragma once

#include <array>
#include <string_view>

namespace shardmark {

struct SeriesInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view description;  // includes the meaning of rows and columns
};

inline constexpr std::array<SeriesInfo, 43> kSeries = {{
    {"step", "s", "time of each timed step (operation), [rank, step]"},
    {"data", "s", "part of the step spent waiting for the batch, [rank, step]"},
    {"forward", "s", "part of the step in forward, communication excluded, [rank, step]"},
    {"backward", "s", "part of the step in backward, communication excluded, [rank, step]"},
    {"exposed", "s", "part of the step in which computing waited for communication, [rank, step]"},
    {"optimizer", "s", "part of the step in the optimizer, [rank, step]"},
    {"exposed_tensor", "s", "part of exposed in which it waited for tensor-parallel ranks, [rank, step]"},
    {"exposed_context", "s", "part of exposed in which it waited for context-parallel ranks, [rank, step]"},
    {"exposed_pipeline", "s",
     "part of exposed in which it waited for other stages: the bubble, and messages, [rank, step]"},
    {"compute_only", "s", "time of a step in which nothing moves between ranks, [rank, step]"},
    {"communication_only", "s", "time of a step's operations without its computing, [rank, step]"},
    {"block_time", "s",
     "of steps in which nothing moves between ranks, median of: waiting for a batch, forward of each block, "
     "backward of each block (the first block first; 0: another stage has it), update, [rank, moment]"},
    {"parameter_backward_time", "s",
     "of the same steps where a schedule splits backward, median of: the part of each block's backward for "
     "the "
     "gradients of its parameters, [rank, block]"},
    {"program", "",
     "a step in steady state as rank 0 executes it, [moment, column]: what happens (0 a batch, 1 forward, 2 "
     "backward, 3 update, 4 an operation starts, 5 is waited for, 6 forward again, 7 and 8 backward of a "
     "block's input and of its parameters), number of the block or "
     "operation, and of "
     "a start the collective (0 all_reduce, 1 reduce_scatter, 2 all_gather, ...: as in the list of "
     "collectives), payload in bytes, ranks, distance between neighbours of them, root or -1"},
    {"window", "s",
     "wall time of each window between two barriers; of a sustained run, of each interval's windows "
     "together, [rank, window]"},
    {"energy", "J", "energy of each rank's device in each window (interval), [rank, window]"},
    {"preemptions", "",
     "involuntary context switches per computing thread of each rank in each window (interval), [rank, "
     "window]"},
    {"interval_end", "s",
     "of a sustained run: when each interval ended, since the timed steps began, [1, interval]"},
    {"interval_steps", "steps", "steps of each interval; series of steps keep some of them, [1, interval]"},
    {"interval_time", "s", "median of the steps of each interval, [rank, interval]"},
    {"interval_worst", "s", "longest step of each interval, [rank, interval]"},
    {"interval_compute", "s", "median of forward + backward of the steps of each interval, [rank, interval]"},
    {"interval_clock", "MHz",
     "of the multiprocessors (the core), mean of what the device said once a window, [rank, interval]"},
    {"interval_temperature", "C", "the last in each interval, [rank, interval]"},
    {"interval_power", "W", "mean of what the device said once a window, [rank, interval]"},
    {"interval_throttle", "",
     "why the clock was held down at some time in each interval, as NVML's bits: 4 power cap, 8 hardware, "
     "32 heat (driver), 64 heat (hardware), 128 power brake; others are no slow-down, [rank, interval]"},
    {"interval_throttled", "", "share of the readings with one of these bits, [rank, interval]"},
    {"interval_faulty", "", "share of the readings with one of these bits other than 4, [rank, interval]"},
    {"expert_load", "tokens",
     "of a mixture of experts: tokens that each expert was given in a step, of all ranks, mean over the "
     "steps, "
     "[layer, expert]"},
    {"load_alone", "s", "of a collective beside a load: the load's part of a round, alone, [rank, round]"},
    {"collective_alone", "s", "the collective's part of a round, alone, [rank, round]"},
    {"load_together", "s", "the load's part, while the collective runs, [rank, round]"},
    {"collective_together", "s", "the collective's part, while the load runs, [rank, round]"},
    {"together", "s",
     "both parts at the same time, from the begin to the end of the later one, [rank, round]"},
    {"peak", "bytes", "peak memory of the point, [rank, 1]"},
    {"loss", "", "mean over ranks of each step of a training run, [1, step]"},
    {"learning_rate", "", "of each step, [1, step]"},
    {"gradient_norm", "", "global norm of the gradient; NaN where it was not asked for, [1, step]"},
    {"held_out_at", "steps", "steps done at each evaluation, [1, evaluation]"},
    {"held_out_loss", "", "loss on the samples held out, [1, evaluation]"},
    {"accuracy", "", "share of held-out targets that had the largest logit, [1, evaluation]"},
    {"checkpoint_write", "s",
     "of a training run: from its stop for a checkpoint until that is on the disk, [1, checkpoint]"},
    {"checkpoint_read", "s",
     "of a training run that goes on: finding, checking and loading its checkpoint, [1, launch]"},
}};

}  // namespace shardmark
