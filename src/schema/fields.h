// The field table: every stored column with its name, unit and meaning; the table of series, every kind of
// raw samples that a record may hold; and the version of the schema. Code that writes, reads or documents a
// study visits these tables, so a new column is one new line here.
#pragma once

#include <array>
#include <string_view>
#include <variant>

#include "schema/axes.h"
#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

// A row of the table of series.
struct SeriesInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view description;  // includes the meaning of rows and columns
};

inline constexpr std::array<SeriesInfo, 45> kSeries = {{
    {"step", "s", "time of each timed step (operation), [rank, step]"},
    {"data", "s", "part of the step spent waiting for the batch, [rank, step]"},
    {"forward", "s", "part of the step in forward, communication excluded, [rank, step]"},
    {"backward", "s", "part of the step in backward, communication excluded, [rank, step]"},
    {"exposed", "s", "part of the step in which computing waited for communication, [rank, step]"},
    {"optimizer", "s", "part of the step in the optimizer, [rank, step]"},
    {"exposed_tensor", "s", "part of exposed in which it waited for tensor-parallel ranks, [rank, step]"},
    {"exposed_context", "s", "part of exposed in which it waited for context-parallel ranks, [rank, step]"},
    {"exposed_expert", "s", "part of exposed in which it waited for expert-parallel ranks, [rank, step]"},
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
     "from the stop for a checkpoint until it is written, on the slowest rank, [1, checkpoint]"},
    {"checkpoint_stall", "s",
     "of a training point: how long training stopped or was slowed down for each checkpoint, [1, "
     "checkpoint]"},
    {"checkpoint_read", "s",
     "checking and loading a checkpoint, on the slowest rank; in a resumed training run also finding it, "
     "[1, checkpoint or launch]"},
}};

// The version of the schema is major.minor: minor grows when something is added, major when something is
// renamed, removed or gets another meaning. A reader takes any file of its major version; a column that an
// older one lacks gets the default of its member. The first release writes 1.10, and earlier files are
// refused.
inline constexpr int kSchemaMajor = 1;
inline constexpr int kSchemaMinor = 14;
inline constexpr int kFirstReleasedMinor = 10;

// A number that is measured. What it means is said here alone: the study's file, `list columns`, tables,
// plots and exports take their words from this row.
struct MeasureRow {
  const char* name;
  const char* unit;
  const char* description;
  std::variant<double Measures::*, int64_t Measures::*, bool Measures::*, std::string Measures::*> member;
  const char* heading = nullptr;  // of a column of a table; nullptr: the name
};

inline constexpr MeasureRow kMeasures[] = {
    {"step", "s", "median over the steps, of the slowest rank's time", &Measures::step_s},
    {"step_low", "s", "lower end of the 95 % interval of the median step, which takes 6 steps",
     &Measures::step_low_s, "low"},
    {"step_high", "s", "upper end of the 95 % interval of the median step, which takes 6 steps",
     &Measures::step_high_s, "high"},
    {"step_p10", "s", "10th percentile of the steps", &Measures::step_p10_s},
    {"step_p90", "s", "90th percentile of the steps", &Measures::step_p90_s},
    {"step_p99", "s", "99th percentile of the steps", &Measures::step_p99_s},
    {"variation", "", "coefficient of variation of the steps", &Measures::variation},
    {"drift", "", "Spearman correlation of step time with step number", &Measures::drift},
    {"slowest_rank", "", "rank that was the maximum most often", &Measures::slowest_rank},
    {"slowest_share", "", "its share of the steps", &Measures::slowest_share},
    {"num_steps", "steps", "timed", &Measures::num_steps},
    {"num_warmup", "steps", "run before timing", &Measures::num_warmup},
    {"energy", "J/step",
     "of all ranks' GPUs together, by their own counters (NVML), over the timed windows / steps",
     &Measures::energy_j},
    {"preemptions", "1/s",
     "how often a computing thread lost its core to something else while steps were timed: involuntary "
     "context switches per thread and second, of the rank that had most",
     &Measures::preemptions_per_s},
    {"oversubscribed", "", "more ranks than cores, or several ranks on one GPU", &Measures::oversubscribed},
    {"unaccounted", "", "a rank's durations did not add up to its wall time within 1 %",
     &Measures::unaccounted},
    {"samples_per_s", "samples/s", "of all ranks together, by the wall time of the slowest rank",
     &Measures::samples_per_s},
    {"tokens_per_s", "tokens/s", "of all ranks together, by the wall time of the slowest rank",
     &Measures::tokens_per_s},
    {"data_time", "s",
     "waiting for the batch. Each phase is the median over the steps, on the rank that was slowest in that "
     "step",
     &Measures::data_s, "data"},
    {"forward_time", "s", "without waiting for communication", &Measures::forward_s, "forward"},
    {"backward_time", "s", "without waiting for communication", &Measures::backward_s, "backward"},
    {"exposed_time", "s", "the part of a step during which computing waited for communication",
     &Measures::exposed_s, "exposed"},
    {"exposed_tensor_time", "s", "waiting for ranks that share the same blocks", &Measures::exposed_tensor_s,
     "tensor"},
    {"exposed_context_time", "s", "waiting for ranks that share the same sequences",
     &Measures::exposed_context_s, "context"},
    {"exposed_expert_time", "s", "waiting for ranks that share the same experts", &Measures::exposed_expert_s,
     "expert"},
    {"exposed_pipeline_time", "s",
     "waiting for other stages of a pipeline: its bubble, and messages that nothing hides",
     &Measures::exposed_pipeline_s, "stages"},
    {"optimizer_time", "s", "the update of the parameters", &Measures::optimizer_s, "optimizer"},
    {"compute_only_time", "s",
     "the step with communication disabled, measured separately: median over the steps of the slowest rank",
     &Measures::compute_only_s, "compute"},
    {"communication_only_time", "s",
     "the recorded operations of the step without its computing, measured separately: median over the steps "
     "of "
     "the slowest rank",
     &Measures::communication_only_s, "comm."},
    {"probed_communication_time", "s",
     "a step's operations one after the other, as the probe of strategy auto expected them",
     &Measures::probed_communication_s},
    {"overlap", "", "1 - (step - compute_only_time) / communication_only_time", &Measures::overlap},
    {"flops_per_step", "FLOP", "model FLOPs per rank and step by formula", &Measures::flops_per_step},
    {"peak_flops", "FLOP/s", "peak of a rank's device, measured by a matrix product", &Measures::peak_flops},
    {"datasheet_flops", "FLOP/s", "peak of a rank's device by its data sheet", &Measures::datasheet_flops},
    {"mfu", "",
     "model FLOPs per rank and step / step time / dense peak in the data sheet of a rank's device (Chowdhery "
     "et al., PaLM, 2022, appendix B). Attention counts in full, and what is recomputed counts once. Not "
     "given for devices whose data sheet is not known, and above 100 %",
     &Measures::mfu},
    {"loss_first", "", "loss of the first step", &Measures::loss_first},
    {"loss_last", "", "loss of the last step", &Measures::loss_last},
    {"skipped_updates", "", "left out because fp16 gradients were not finite", &Measures::num_skipped},
    {"gradient_norm", "", "global norm of the gradient in the last step", &Measures::gradient_norm},
    {"first_step", "steps", "steps that a training run had done before the first that is here",
     &Measures::first_step},
    {"held_out_loss", "", "loss on the samples held out, at the end", &Measures::held_out_loss},
    {"accuracy", "", "share of held-out targets that had the largest logit, at the end", &Measures::accuracy},
    {"verified", "", "what the strategy was compared with, and the result", &Measures::verified},
    {"verify_error", "", "largest relative difference of losses and gradient norms", &Measures::verify_error},
    {"launcher_time", "s",
     "from when launch started mpirun, srun or flux run to the start of rank 0's process; not known without "
     "launch",
     &Measures::launcher_s, "launcher"},
    {"program_time", "s",
     "from the start of a rank's process to MPI_Init: its libraries are loaded; on the slowest rank",
     &Measures::program_s, "program"},
    {"mpi_time", "s", "MPI_Init, on the slowest rank", &Measures::mpi_s, "MPI"},
    {"communicators_time", "s",
     "making the point's communicators, those of its layout included, and closing those of the point before, "
     "on "
     "the slowest rank",
     &Measures::communicators_s, "communicators"},
    {"model_time", "s", "making the model: weights, gradients and the optimizer's state, on the slowest rank",
     &Measures::model_s, "model"},
    {"first_step_time", "s",
     "the first step that the point makes, on the slowest rank: operations connect, kernels are chosen, "
     "memory "
     "is taken. Rank 0 has computed before, where the point is compared with one device; so on one rank it "
     "is "
     "shorter than a job's first step",
     &Measures::first_step_s, "first step"},
    {"parameter_bytes", "bytes", "persistent parameters, on the rank whose peak is highest",
     &Measures::parameter_bytes, "measured"},
    {"gradient_bytes", "bytes", "persistent gradients, on the rank whose peak is highest",
     &Measures::gradient_bytes, "measured"},
    {"optimizer_bytes", "bytes", "optimizer state, on the rank whose peak is highest",
     &Measures::optimizer_bytes, "measured"},
    {"transient_bytes", "bytes", "slots and buckets of the strategy, on the rank whose peak is highest",
     &Measures::transient_bytes, "measured"},
    {"offloaded_bytes", "bytes", "kept in host memory beside the device's, on the rank whose peak is highest",
     &Measures::offloaded_bytes, "in host memory"},
    {"peak_bytes", "bytes", "highest total during a step, on the rank that needs most", &Measures::peak_bytes,
     "peak memory"},
    {"reserved_bytes", "bytes", "of a GPU: the most that LibTorch's allocator held, largest rank",
     &Measures::reserved_bytes},
    {"device_bytes", "bytes", "of a GPU: in use after the last step by all that is on it, largest rank",
     &Measures::device_bytes},
    {"memory_limit_bytes", "bytes", "the most that a rank might hold", &Measures::memory_limit_bytes},
    {"predicted_parameter_bytes", "bytes", "persistent parameters by the strategy's formula",
     &Measures::predicted_parameter_bytes},
    {"predicted_gradient_bytes", "bytes", "persistent gradients by the strategy's formula",
     &Measures::predicted_gradient_bytes},
    {"predicted_optimizer_bytes", "bytes", "optimizer state by the strategy's formula",
     &Measures::predicted_optimizer_bytes},
    {"predicted_transient_bytes", "bytes", "slots and buckets by the strategy's formula",
     &Measures::predicted_transient_bytes},
    {"predicted_offloaded_bytes", "bytes", "in host memory by the strategy's formula",
     &Measures::predicted_offloaded_bytes},
    {"predicted_activation_bytes", "bytes", "activations at the height of a step, by the model's table",
     &Measures::predicted_activation_bytes},
    {"traffic_bytes", "bytes/step",
     "per rank and step: payload of each collective as it was started, times its ring factor (all-reduce "
     "2(N-1)/N; all-gather, reduce-scatter, broadcast, reduce (N-1)/N); mean over ranks, MB = 10^6 bytes "
     "(Patarasuk and Yuan, JPDC 69(2), 2009)",
     &Measures::traffic_bytes, "counted"},
    {"predicted_traffic_bytes", "bytes/step",
     "by the formula of the strategy's paper, without padding. Where ranks share a model's blocks, sequences "
     "or experts, by the step's program, as if a router chose all experts alike",
     &Measures::predicted_traffic_bytes, "predicted"},
    {"between_nodes_bytes", "bytes/step",
     "of the bytes that a rank sends in a step, those between nodes, on the rank that sends most, as a "
     "hierarchical all-reduce counts them",
     &Measures::between_nodes_bytes, "between nodes"},
    {"num_operations", "per step", "collectives that a rank starts in a step", &Measures::num_operations,
     "operations"},
    {"checkpoint_write_time", "s",
     "median over the checkpoints, from a barrier until the files of all ranks are written (on the disk, "
     "unless sync is false)",
     &Measures::checkpoint_write_s, "write"},
    {"checkpoint_stall_time", "s",
     "median over the checkpoints, of the time that training stops for one: the write; where that is "
     "asynchronous, how much longer the steps until its end took than usual, the copy to host memory "
     "included",
     &Measures::checkpoint_stall_s, "stall"},
    {"checkpoint_read_time", "s",
     "median over the checkpoints, of checking and loading one that is not in the page cache, on the slowest "
     "rank",
     &Measures::checkpoint_read_s, "read"},
    {"checkpoint_bytes", "bytes", "of the files of a checkpoint, all ranks together",
     &Measures::checkpoint_bytes, "written"},
    {"predicted_checkpoint_bytes", "bytes",
     "of the tensors in a checkpoint by formula: parameters and optimizer state in their master type, "
     "buffers, residuals; of sharded ones their padding and what several ranks need whole, too",
     &Measures::predicted_checkpoint_bytes, "formula"},
    {"num_load_units", "",
     "of a collective beside a load: units of the load in a round, as long as its operations",
     &Measures::num_load_units},
    {"network_sent_bytes", "bytes/step",
     "sent by all network ports of its nodes while steps were timed, by the ports' own counters, which count "
     "other programs' bytes and headers too; only where there are several nodes",
     &Measures::network_sent_bytes, "sent"},
    {"network_received_bytes", "bytes/step",
     "received by all network ports of its nodes while steps were timed", &Measures::network_received_bytes,
     "received"},
    {"network_sent_packets", "packets/step", "sent by all network ports of its nodes while steps were timed",
     &Measures::network_sent_packets, "sent"},
    {"network_received_packets", "packets/step",
     "received by all network ports of its nodes while steps were timed", &Measures::network_received_packets,
     "received"},
    {"network_retransmits", "",
     "packets that the network ports of its nodes and TCP sent again while steps were timed, and the "
     "time-outs "
     "and NAKs that cause it",
     &Measures::network_retransmits, "sent again"},
    {"network_losses", "",
     "packets that the network ports of its nodes dropped or found damaged while steps were timed, symbol "
     "errors, and links that went down",
     &Measures::network_losses, "lost"},
    {"network_congestion", "",
     "congestion notifications and marks, and pause frames, that the network ports of its nodes counted "
     "while steps were timed",
     &Measures::network_congestion, "congestion"},
    {"network_idle_ports", "",
     "network ports that sent less than 1 % of what the busiest port of their node sent, which is of the "
     "same "
     "kind and rate",
     &Measures::network_idle_ports, "idle ports"},
    {"network_ports", "", "which network ports were in trouble, gone or idle, and which one sent most",
     &Measures::network_ports, "ports"},
    {"algbw", "GB/s", "bytes / time", &Measures::algbw_gb_s},
    {"busbw", "GB/s",
     "algbw x the operation's factor; of all_to_all_v what the busiest rank exchanges with others / time",
     &Measures::busbw_gb_s},
    {"estimated_time", "s",
     "what NCCL itself expects of the operation (ncclGroupSimulateEnd), on rank 0; only where the loaded "
     "NCCL tells it",
     &Measures::estimated_s, "NCCL's estimate"},
    {"num_wrong", "elements", "that differed from the expected value; -1: not verified",
     &Measures::num_wrong},
};

// Calls visit(name, unit, description, member) for every column of a record, in the order of the file.
// Members are of type std::string, int64_t, double, bool, Choice or Outcome. R is Record or const Record.
template <class R, class Visit>
// NOLINTNEXTLINE(readability-function-size): a table
void visit_fields(R& r, Visit&& visit) {
  auto& p = r.point;
  auto& t = p.training;
  auto& s = p.sampling;
  visit("id", "", "hash of everything that defines the point", r.id);
  visit("outcome", "", "ok, skipped, out_of_memory, wrong, failed or timed_out", r.outcome);
  visit("reason", "", "why the outcome is not ok, or why auto chose what it chose", r.reason);
  visit("started", "UTC", "when the point began", r.started);
  visit("duration", "s", "whole point, set-up and verification included", r.duration_s);
  visit("attempts", "", "how often it was begun: a second time after a rank crashed or hung", r.attempts);
  visit("ended_job", "", "a rank crashed or hung in the last attempt and ended the job", r.ended_job);
  visit("workload", "", "training, collective, or train: a run of shardmark train", p.workload);
  const auto axis_column = [&](const AxisRow& axis) {
    if (!axis.is_stored()) return;
    visit_member(axis, p, [&](auto& member) { visit(axis.key, axis.unit, axis.description, member); });
  };
  for (const AxisRow& axis : kCommonAxes) axis_column(axis);
  visit("seed", "", "of initial values, data and order", p.seed);
  visit("repeat", "", "number of the repetition, from 0", p.repeat);
  for (const AxisRow& axis : kTrainingAxes) axis_column(axis);
  visit("scaling", "",
        "how the suite wrote the batch, first where it did both ways; weak: per rank; strong: of all ranks",
        t.scaling);
  visit("chosen", "", "strategy that auto chose", t.chosen);
  for (const AxisRow& axis : kCollectiveAxes) axis_column(axis);
  visit("warmup_steps", "steps", "least warm-up asked for", s.warmup_steps);
  visit("min_steps", "steps", "least timed steps asked for", s.min_steps);
  visit("max_steps", "steps", "most timed steps asked for", s.max_steps);
  visit("time_limit", "s", "of sampling", s.time_limit_s);
  visit("wanted_precision", "", "relative half-width of the median's interval at which sampling stops",
        s.precision);
  visit("wanted_duration", "s", "for how long steps were to go on; 0: until measured enough", s.duration_s);
  for (const MeasureRow& row : kMeasures) {
    std::visit([&](auto member) { visit(row.name, row.unit, row.description, r.measures.*member); },
               row.member);
  }
}

// The two tables of an environment; members are std::string, int64_t, std::vector<std::string> or JsonObject.
// The first says how the study was made, and is stored as attributes of the root. The second says what it ran
// on, and is stored in the group /environment.
template <class E, class Visit>
void visit_provenance(E& e, Visit&& visit) {
  visit("command_line", "", "that made the study", e.command_line);
  visit("revision", "", "git describe of the program", e.revision);
  visit("suite", "", "the suite's YAML as read", e.suite_text);
  visit("suite_path", "", "where the suite was read", e.suite_path);
  visit("started", "UTC", "when the study began", e.started);
}

template <class E, class Visit>
void visit_environment(E& e, Visit&& visit) {
  visit("transport", "", "default transport", e.transport);
  visit("world_ranks", "", "ranks that were started", e.world_ranks);
  visit("order_seed", "", "of the shuffled order of points", e.order_seed);
  visit("threads_per_rank", "", "threads of each rank", e.threads_per_rank);
  visit("nodes", "", "host name of each node", e.nodes);
  visit("devices", "", "device of each rank", e.devices);
  visit("rank_nodes", "", "host name of each rank", e.rank_nodes);
  visit("versions", "", "JSON: library -> version", e.versions);
  visit("variables", "", "JSON: allow-listed environment variables", e.variables);
  visit("facts", "",
        "JSON: cores, memory, processor, peaks; launches that resumed the study, with what was different "
        "before "
        "and the suite's text before an edit",
        e.facts);
}

}  // namespace shardmark
