// shardmark train: one training run, started on every rank by mpirun or srun.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/parsed.h"
#include "cli/run/preflight.h"
#include "cli/run/train_flags.h"
#include "cli/whole_program.h"
#include "comm/in_step.h"
#include "comm/transports.h"
#include "device/device.h"
#include "device/meter.h"
#include "executor/precision.h"
#include "plan/plan.h"
#include "plan/warnings.h"
#include "schema/file.h"
#include "schema/journal.h"
#include "strategies/brief_text.h"
#include "strategies/strategy.h"
#include "sweep/environment.h"
#include "sweep/workloads/auto_strategy.h"
#include "train/run.h"
#include "train/run_study.h"

namespace shardmark {
namespace {

// Makes every run compute the same bits; an operation that cannot do that throws an error.
void make_deterministic() {
  // cuBLAS needs this workspace setting for deterministic results.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

// Finds out where the run starts: rank 0 reads the newest checkpoint or the weights before anything is
// computed.
Start find_start(const TrainFlags& flags, const HostGroup& world) {
  Start start;
  together(world, [&] {
    check_train_flags(flags);
    if (world.rank() != 0) return;
    const Checkpoints checkpoints(flags.checkpoint);
    if (!flags.checkpoint.empty()) start.directory = checkpoints.claim();
    if (!flags.checkpoint.empty() && !flags.resume) checkpoints.start();
    const double begin_s = now_s();
    if (flags.resume) start.file = checkpoints.newest();
    start.checked_s = now_s() - begin_s;
    if (start.file) {
      start.step = step_of(*start.file);
      start.what = State::all;
    } else if (!flags.weights.empty()) {
      start.file.emplace(flags.weights);
      start.file->verify();
    }
  });
  start.loads = world.broadcast(static_cast<int64_t>(start.file.has_value()), 0) != 0;
  start.what =
      world.broadcast(static_cast<int64_t>(start.what == State::all), 0) != 0 ? State::all : State::weights;
  start.step = world.broadcast(start.step, 0);
  return start;
}

// The global batch of the run that is resumed; the same on all ranks.
std::optional<int64_t> global_batch_of(const Start& start, const HostGroup& world) {
  if (start.what != State::all) return {};
  return world.broadcast(start.file ? global_batch_of(*start.file) : 0, 0);
}

bool is_unfinished(const std::string& study) { return has_journal(follow_links(study)); }

// Throws if there are no steps left. The weights of a finished run can still be written, and its study
// published.
void check_steps(const TrainFlags& flags, const Start& start, int64_t num_steps) {
  if (start.what != State::all || start.step < num_steps) return;
  if (start.step == num_steps && (!flags.save_weights.empty() || is_unfinished(flags.output))) return;
  throw UsageError(fmt::format(
      "the checkpoint is at step {}, and the run ends at step {}: nothing to do; give {}", start.step,
      num_steps, flags.epochs ? "more --epochs" : fmt::format("--steps above {}", start.step)));
}

// Checks on rank 0 the files that the run reads and those that it will write.
void check_files(const TrainFlags& flags, const Start& start, const TrainingOptions& options) {
  check_paths(flags, options.point);
  if (start.file) {
    if (start.what == State::all) check_identity(*start.file, options.identity);
    const Choice& model = options.point.training.model;
    check_model(*start.file, *specs::model_table(model), to_text(model));
    check_steps(flags, start, options.num_steps);
  }
  check_outputs(options, start.step);
}

void check_memory(const TrainFlags& flags, const Point& point, at::Device device, int local_ranks) {
  const int64_t limit = limit_memory(flags.memory_limit.value_or(0), device, local_ranks);
  const std::string reason = memory_reason(point, limit);
  if (!reason.empty())
    throw UsageError(reason + "; choose a smaller model, or more ranks and a strategy that shards its state");
}

void check_transport(const Point& point, strategies::Serving serving, specs::MpiServes mpi) {
  std::string reason = strategies::serving_impossible(point, serving);
  if (reason.empty() && point.transport == "mpi") reason = mpi_reason(point, mpi);
  if (!reason.empty()) throw UsageError(reason);
}

void tell_warnings(const Point& point) {
  for (const std::string& warning : warnings_of(point)) log_warning(warning);
}

// Warns if the device has no tf32, or emulates products in fp8: no result of the run would show it.
void tell_arithmetic(const TrainingPoint& t, at::Device device) {
  const auto native = native_precisions(device);
  if (t.precision == "tf32" && std::find(native.begin(), native.end(), t.precision) == native.end())
    log_warning(
        fmt::format("--precision tf32 is the same as fp32 here: {} has no such arithmetic, which needs an "
                    "NVIDIA GPU (Ampere or later)",
                    device_name(device)));
  if (t.products.name == "fp8" && (t.emulates_products() || !has_fp8_products(device, t.scales_blocks())))
    log_warning(
        fmt::format("the products of {} are emulated here, which shows what training becomes, and no speed",
                    to_text(t.products)));
}

void print_head(const TrainFlags& flags, const TrainingOptions& options, const Start& start,
                const DataSource& source) {
  const Point& point = options.point;
  const auto& t = point.training;
  std::string head = fmt::format(
      "{}: {} samples a step, {} to train on, {} held out; peak learning rate {:g}{}\n", brief_text(point),
      point.global_batch(), source.size(), source.num_held_out(), t.optimizer.options.at("lr").get<double>(),
      flags.scale_lr ? fmt::format(" (x {} ranks)", point.data_ranks()) : "");
  if (flags.epochs)
    head += fmt::format("{} epoch{}: {} steps\n", *flags.epochs, *flags.epochs == 1 ? "" : "s",
                        options.num_steps);
  if (start.file)
    head += fmt::format("{} {}\n",
                        start.what == State::all ? fmt::format("continuing after step {} from", start.step)
                                                 : std::string("weights from"),
                        start.file->path());
  if (flags.resume && start.what != State::all)
    head += fmt::format("no checkpoint in {} yet: starting at step 0\n", flags.checkpoint);
  print_progress(head);
}

// Opens the study on rank 0; nullptr elsewhere. A study that cannot be written ends the run before it begins.
std::unique_ptr<RunStudy> open_study(const TrainFlags& flags, const Ranks& ranks, Environment environment,
                                     const Point& point, const Start& start) {
  std::unique_ptr<RunStudy> study;
  together(*ranks.world, [&] {
    if (ranks.world->rank() != 0 || flags.output.empty()) return;
    if (flags.checkpoint.empty() && (is_unfinished(flags.output) || file_exists(flags.output)))
      throw UsageError(flags.output +
                       " exists, and a run without --checkpoint cannot go on with it; choose another output");
    environment.command_line = command_line();
    environment.suite_path = flags.file;
    environment.suite_text = flags.file_text;
    study = std::make_unique<RunStudy>(flags.output, environment, point, start.step, flags.resume,
                                       *ranks.watchdog);
  });
  return study;
}

// Stores the record. Returns the reason if it could not be written, in the words of Run::unwritten().
std::string end_study(RunStudy& study, const Record& record, const std::string& path) {
  try {
    study.end(record);
    return "";
  } catch (const std::exception& error) {
    return fmt::format("the study was not written, its curves are in {}: {}", journal_path(path),
                       error.what());
  }
}

// Ends a run that failed before its first step, and stores the reason in its study.
void fail_early(const Verdict& verdict, RunStudy* study, const std::string& path) {
  log_line(verdict.reason);
  if (study == nullptr) return;
  Record record = study->record();
  record.outcome = verdict.outcome;
  record.reason = verdict.reason;
  record.samples = study->before().series();
  if (const std::string trouble = end_study(*study, record, path); !trouble.empty()) log_warning(trouble);
}

int train_to_end(Run& run, RunStudy* study, const Ranks& ranks, const std::string& path) {
  const HostGroup& world = *ranks.world;
  catch_stop_signals();
  const Record record = in_step(
      world.size(), [&] { return ranks.heartbeat().place(); }, [&] { return run.train(); });
  ranks.heartbeat().end_point();
  if (world.rank() == 0 && !record.reason.empty()) log_line(record.reason);
  std::string unwritten = run.unwritten();
  if (study != nullptr)
    if (const std::string trouble = end_study(*study, record, path); !trouble.empty())
      unwritten += (unwritten.empty() ? "" : "; ") + trouble;
  unwritten = world.broadcast(unwritten, 0);
  if (world.rank() == 0 && !unwritten.empty()) log_line("failed: " + unwritten);
  if (!unwritten.empty()) return kSystem;
  return record.reason.empty() ? kDone : kWrong;
}

void check_device(const Point& point, at::Device device) {
  for (const std::string& reason :
       {kernels_reason(point, device.is_cpu()), graph_reason(point, device.is_cpu()), products_reason(point)})
    if (!reason.empty()) throw UsageError(reason);
}

// Calls make() and adds the place in the run's file to errors about values that do not go together.
template <class Make>
auto in_terms_of_file(const TrainFlags& flags, Make make) {
  try {
    return make();
  } catch (const UsageError& error) {
    throw UsageError(located(flags, error.what()));
  }
}

int train(const TrainFlags& flags) {
  // Initialize MPI and the watchdog, and look for problems that would distort the run.
  if (flags.deterministic) make_deterministic();
  const Ranks ranks(flags.world);
  const HostGroup& world = *ranks.world;
  Heartbeat& heartbeat = ranks.heartbeat();
  Preflight checked = preflight(flags.world, ranks, flags.output);
  const at::Device device = checked.device;

  // Find the checkpoint or weights to start from. All ranks need the step and the global batch of a
  // checkpoint before the flags can be turned into a point.
  const std::string transport = transport_for(flags.world, device);
  const Start start = find_start(flags, world);
  const auto global_batch = global_batch_of(start, world);
  // Make the point, the data source and the options, and check them against the device, memory and files,
  // before anything is measured or written.
  std::unique_ptr<DataSource> source;
  std::optional<TrainingOptions> options;
  const strategies::Serving serving = serving_of(device, world);
  const specs::MpiServes mpi = mpi_serves(device, world);
  together(world, [&] {
    const Point point = in_terms_of_file(flags, [&] {
      Point made = train_point(flags, world.size(), transport, global_batch);
      check_device(made, device);
      return made;
    });
    check_transport(point, serving, mpi);
    check_memory(flags, point, device, ranks.session->local_size());
    const auto& t = point.training;
    source = make_source(t.data, {specs::model_table(t.model)->sample,
                                  precision_from(t.precision, t.reduce_dtype).compute, point.seed,
                                  /*holds_out=*/true, point.folder});
    options.emplace(in_terms_of_file(flags, [&] { return run_options(flags, point, *source); }));
    if (world.rank() == 0 && !flags.checkpoint.empty()) options->identity.content = source->content();
    if (world.rank() == 0) check_files(flags, start, *options);
  });
  checked.look_at_layouts({options->point});
  // Measure the peak FLOP/s of this machine, and make the communicator of all ranks.
  heartbeat.stage("measuring the peaks of this machine");
  const Resources resources =
      describe_resources(world, *ranks.session, device, {options->point.training.product_type()});
  heartbeat.stage("creating communicator and strategy");
  Environment environment = describe_environment(world, device, resources);
  checked.keep_in(environment);
  std::unique_ptr<Communicator> comm;
  together(world, [&] { comm = make_communicator(transport, world, device, resources.communication()); });

  // Resolve strategy `auto`, open the study, and print what the run is about to do.
  ProbeCache probes;
  const Settled settled = in_step(
      world.size(), [&] { return heartbeat.place(); },
      [&] { return settle_strategy(options->point, world, *comm, probes); });
  options->point = settled.point;
  const std::unique_ptr<RunStudy> study =
      open_study(flags, ranks, std::move(environment), options->point, start);
  if (world.rank() == 0 && !settled.reason.empty()) log_line(settled.reason);
  checked.print_warnings(/*quiet=*/false);
  if (world.rank() == 0) {
    tell_arithmetic(options->point.training, device);
    tell_warnings(options->point);
  }
  if (world.rank() == 0) print_head(flags, *options, start, *source);
  comm->set_heartbeat(&heartbeat);
  heartbeat.begin_point(brief_text(options->point));
  // Take the memory of the run, then load weights and state. A rank may fail in either alone, so all ranks
  // agree on each.
  TrainingSetup setup(options->point, *comm);
  std::unique_ptr<Run> run;
  Verdict ready = agreed(world, heartbeat, "set-up", [&] {
    const meter::Strict strict;
    run = std::make_unique<Run>(*options, start, world, setup, resources, *source, heartbeat, study.get());
  });
  // A file of weights or a checkpoint does not fit, and the user has to replace it.
  bool is_unfit = false;
  if (ready.ok())
    ready = agreed(world, heartbeat, "reading the state", [&] {
      try {
        run->load(start);
      } catch (const UsageError&) {
        is_unfit = true;
        throw;
      }
    });
  ready.reason = reason_of(ready, options->point);
  if (!ready.ok()) {
    if (world.rank() == 0) fail_early(ready, study.get(), flags.output);
    return world.max(static_cast<int64_t>(is_unfit)) != 0 ? kUsage : kWrong;
  }
  return train_to_end(*run, study.get(), ranks, flags.output);
}

std::function<int()> define_train(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  add_train_flags(app, *flags);
  return [flags] { return train(*flags); };
}

const Registration<CommandEntry> train_command{"train", {whole_command("train")->description, define_train}};

}  // namespace
}  // namespace shardmark
