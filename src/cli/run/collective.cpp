// shardmark collective: measures one collective over a range of sizes on any transport, with the flags and
// columns of nccl-tests, and keeps what was measured as a study where a file is given for it.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utc.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/run/preflight.h"
#include "cli/run/world.h"
#include "cli/values.h"
#include "cli/whole_program.h"
#include "comm/in_step.h"
#include "comm/transports.h"
#include "device/device.h"
#include "device/meter.h"
#include "doctor/placement.h"
#include "plan/choice_axis.h"
#include "plan/plan.h"
#include "schema/file.h"
#include "schema/journal.h"
#include "schema/step_statistics.h"
#include "schema/study.h"
#include "specs/collectives.h"
#include "specs/parts.h"
#include "specs/specs.h"
#include "strategies/brief_text.h"
#include "sweep/environment.h"
#include "sweep/measure.h"
#include "sweep/network_watch.h"
#include "sweep/workloads/workload.h"

namespace shardmark {
namespace {

constexpr int64_t kMostSizes = 100000;

struct CollectiveFlags {
  std::string operation;
  int64_t least = 32 << 20;  // bytes
  int64_t most = 32 << 20;
  int64_t increment = 1 << 20;
  int64_t factor = 0;
  std::string dtype = "float";
  std::string reduction = "sum";
  std::string parts;  // empty: what is usual for the operation
  int64_t iterations = 20;
  int64_t warmup = 1;
  bool check = true;
  std::string output;
  WorldFlags world;
};

// The names that nccl-tests uses, and ours.
using Synonyms = std::map<std::string, std::string>;
const Synonyms kDtypes = {{"float", "float32"}, {"half", "float16"}, {"double", "float64"}, {"int", "int32"}};
const Synonyms kReductions = {{"avg", "average"}};

// The name as nccl-tests prints it; for int32, "int32" and not "int".
std::string printed_name(const std::string& own, const Synonyms& synonyms) {
  for (const auto& [word, name] : synonyms)
    if (name == own && word != "int") return word;
  return own;
}

Word words_of(std::vector<std::string> known, const Synonyms& synonyms) {
  for (const auto& [word, name] : synonyms) known.push_back(word);
  known.push_back("all");
  return {std::move(known)};
}

// A word of nccl-tests becomes the name of this program. "all" becomes all names.
std::vector<std::string> translate(const std::string& word, const std::vector<std::string>& known,
                                   const Synonyms& synonyms) {
  if (word == "all") return known;
  const auto synonym = synonyms.find(word);
  return {synonym == synonyms.end() ? word : synonym->second};
}

std::vector<int64_t> sizes_of(const CollectiveFlags& flags) {
  if (flags.most < flags.least)
    throw UsageError(fmt::format("--minbytes {} is above --maxbytes {}", flags.least, flags.most));
  const bool grows_by_factor = flags.factor > 1;
  if (!grows_by_factor && (flags.most - flags.least) / flags.increment >= kMostSizes)
    throw UsageError(
        fmt::format("--stepbytes {} makes more than {} sizes; give a larger one, or --stepfactor 2",
                    flags.increment, kMostSizes));
  std::vector<int64_t> sizes;
  for (int64_t size = flags.least; size <= flags.most;) {
    sizes.push_back(size);
    if (grows_by_factor && size > flags.most / flags.factor) break;  // the next size might overflow 64 bits
    size = grows_by_factor ? size * flags.factor : size + flags.increment;
  }
  return sizes;
}

// What the flags ask for, independent of how it is run.
struct SizeSweep {
  specs::CollectiveRow operation;
  std::vector<int64_t> sizes;
  std::vector<std::string> dtypes;
  std::vector<std::string> reductions;
  std::string parts = {};
};

// Throws UsageError for a size or a type that dispatch and combine cannot have.
void check_tokens(SizeSweep& sweep, const Choice& parts, int num_ranks) {
  if (sweep.dtypes.size() > 1) std::erase(sweep.dtypes, "int32");  // -d all
  for (const std::string& dtype : sweep.dtypes)
    for (const int64_t bytes : sweep.sizes) {
      Point point;
      point.workload = "collective";
      point.ranks = num_ranks;
      point.collective = {sweep.operation.name, dtype, "none", bytes, false, to_text(parts)};
      if (const std::string why = collective_reason(point); !why.empty())
        throw UsageError(fmt::format("{} of {} {}: {}", format_bytes(static_cast<double>(bytes)), dtype,
                                     sweep.operation.name, why));
    }
}

SizeSweep read_sweep(const CollectiveFlags& flags, int num_ranks) {
  SizeSweep sweep{specs::operation(flags.operation), sizes_of(flags), {}, {"none"}};
  sweep.dtypes = translate(flags.dtype, specs::dtype_names(), kDtypes);
  if (sweep.operation.reduces)
    sweep.reductions = translate(flags.reduction, specs::reduction_names(), kReductions);
  if (sweep.dtypes == std::vector<std::string>{"int32"} &&
      sweep.reductions == std::vector<std::string>{"average"}) {
    throw UsageError("-d int32 --op avg: an average of integers is not exact; use sum, min or max");
  }
  if (!flags.parts.empty() && flags.parts != "equal" && !sweep.operation.has_parts)
    throw UsageError(
        fmt::format("--parts {}: the parts of {} are equal; use all_to_all_v", flags.parts, flags.operation));
  const bool moves_tokens = sweep.operation.moves_tokens;
  const std::string usual = moves_tokens ? "experts" : "equal";
  const Choice parts = choice_from_flag(flags.parts.empty() ? usual : flags.parts, "--parts", parts_kind());
  if (moves_tokens != (parts.name == "experts"))
    throw UsageError(fmt::format("--parts {}: {} takes {}", flags.parts, flags.operation,
                                 moves_tokens ? "experts(...)" : "equal, hot, zipf or counts"));
  if (!moves_tokens) specs::share_out(parts, num_ranks, /*elements=*/0);  // reads and checks a file of counts
  sweep.parts = to_text(parts);
  if (moves_tokens) check_tokens(sweep, parts, num_ranks);
  return sweep;
}

void check_transport(const SizeSweep& sweep, const std::string& transport, specs::MpiServes mpi) {
  if (transport != "mpi") return;
  for (const std::string& dtype : sweep.dtypes) {
    Point point;
    point.workload = "collective";
    point.collective.operation = sweep.operation.name;
    point.collective.dtype = dtype;
    point.collective.bytes = *std::max_element(sweep.sizes.begin(), sweep.sizes.end());
    if (const std::string reason = mpi_reason(point, mpi); !reason.empty()) throw UsageError(reason);
  }
}

// nccl-tests has -o for the operator.
void refuse_operator_as_output(const std::string& output) {
  std::vector<std::string> words = specs::reduction_names();
  words.insert(words.end(), {"avg", "prod", "all"});
  if (std::find(words.begin(), words.end(), output) != words.end())
    throw UsageError("-o: a file to write in all commands; the operator is --op " + output);
}

// Measures points on all ranks of the world; rank 0 holds the results.
class Bench {
 public:
  Bench(const CollectiveFlags& flags, const HostGroup& world, Communicator& comm, const Resources& resources,
        Heartbeat& heartbeat)
      : flags_(flags), world_(world), comm_(comm), resources_(resources), heartbeat_(heartbeat) {}

  // Measures a point in this order: buffers, verification, warm-up, timed operations. The counters of the
  // network are read around the timed operations alone. Each rank times its own operations, and the time of
  // an operation is that of its slowest rank (summarize).
  Record measure(const Point& point) {
    heartbeat_.begin_point(brief_text(point));
    Record record;
    record.point = point;
    record.started = utc_now();
    const double begin = now_s();
    // A point that is too large for one rank is too large for all: together() ends the command.
    std::unique_ptr<Workload> workload;
    workload = make_collective({point, world_, comm_, resources_, references_, heartbeat_});
    together(world_, [&] {
      const meter::Strict strict;
      workload->allocate();
    });
    if (flags_.check) workload->verify();
    run_window(*workload, flags_.warmup);
    network_.begin();
    const std::vector<double> own_steps = run_window(*workload, flags_.iterations);
    network_.stop();
    const std::vector<double> steps = world_.gather(own_steps);
    record.samples.push_back({"step", world_.size(), flags_.iterations, steps});
    workload->collect(record);
    network_.end();
    if (world_.rank() == 0) {
      summarize(record);
      network_.fill(record.measures);
      workload->derive(record);
    }
    record.id = point_id(point);
    record.measures.num_warmup = flags_.warmup;
    record.measures.oversubscribed = is_oversubscribed(resources_, point);
    if (record.measures.num_wrong > 0) {
      record.outcome = Outcome::wrong;
      record.reason = fmt::format("{} elements differ from the expected values", record.measures.num_wrong);
    }
    record.duration_s = now_s() - begin;
    heartbeat_.end_point();
    return record;
  }

 private:
  // All ranks begin together, with idle devices, and start the operations one after the other.
  std::vector<double> run_window(Workload& workload, int64_t num_steps) {
    synchronize(comm_.device());
    world_.barrier();
    workload.begin_window();
    for (int64_t i = 0; i < num_steps; ++i) workload.step();
    return workload.end_window().front();
  }

  const CollectiveFlags& flags_;
  const HostGroup& world_;
  Communicator& comm_;
  const Resources& resources_;
  Heartbeat& heartbeat_;
  ReferenceCache references_;
  NetworkWatch network_{world_, resources_};
};

constexpr const char* kNothing = "         -       -       -      -";

std::string columns(const Measures& m) {
  const std::string wrong = m.num_wrong < 0 ? "N/A" : std::to_string(m.num_wrong);
  const double time_us = m.step_s * 1e6;
  const std::string time = time_us < 1000 ? fmt::format("{:.4g}", time_us) : fmt::format("{:.0f}", time_us);
  return fmt::format("{:>10} {:>7.2f} {:>7.2f} {:>6}", time, m.algbw_gb_s, m.busbw_gb_s, wrong);
}

void print_head(const Communicator& comm, const CollectiveFlags& flags, const std::string& placement) {
  constexpr const char* kRow =
      "# {:>12} {:>12} {:>9} {:>8} {:>5}  {:>10} {:>7} {:>7} {:>6}   {:>10} {:>7} {:>7} {:>6}\n";
  print_progress(
      fmt::format("# shardmark collective {}, transport {}, {}, {} a size, {} before\n", flags.operation,
                  comm.transport(), counted(comm.size(), "rank"), counted(flags.iterations, "operation"),
                  flags.warmup) +
      fmt::format("# {}\n", placement) +
      "# time: median over operations of the slowest rank; GB = 1e9 bytes\n#\n" +
      fmt::format("#{:>51} {:>33}   {:>33}\n", "", "out-of-place          ", "in-place            ") +
      fmt::format(kRow, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
                  "algbw", "busbw", "#wrong") +
      fmt::format(kRow, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
                  "(GB/s)", ""));
}

// Totals over all lines, for the footer.
struct Totals {
  double busbw_gb_s = 0;
  int64_t num_values = 0;
  int64_t num_wrong = 0;
  void add(const Measures& m) {
    busbw_gb_s += m.busbw_gb_s;
    ++num_values;
    num_wrong += std::max<int64_t>(m.num_wrong, 0);
  }
};

// Measures a size out of place, and in place if the operation has such a form, and prints both as one line.
// The count is that of nccl-tests: the elements of one rank's part if the message is cut into a part for
// each rank. The printed size is that of all parts, so it is smaller than what was asked for if the ranks do
// not divide it. All ranks measure; only rank 0 prints and records. `study` is set on rank 0, and only where
// one is wanted.
void measure_line(const SizeSweep& sweep, Bench& bench, Point point, int num_ranks, bool prints,
                  Totals& totals, std::optional<Study>& study) {
  const int64_t element = specs::dtype_bytes(point.collective.dtype);
  const specs::CollectiveRow& operation = sweep.operation;
  const int64_t parts = operation.is_cut() && !operation.moves_tokens ? num_ranks : 1;
  const int64_t count = counted_elements(operation, choice_from_text(point.collective.parts), num_ranks,
                                         point.collective.bytes / element);
  std::string sides[2] = {kNothing, kNothing};
  for (const bool in_place : {false, true}) {
    if (in_place && !sweep.operation.in_place) continue;
    point.collective.in_place = in_place;
    const Record record = bench.measure(point);
    if (!prints) continue;
    if (study) study->append(record);
    totals.add(record.measures);
    sides[in_place ? 1 : 0] = columns(record.measures);
  }
  if (!prints) return;
  print_progress(fmt::format("  {:>12} {:>12} {:>9} {:>8} {:>5}  {}   {}\n", count * parts * element, count,
                             printed_name(point.collective.dtype, kDtypes),
                             printed_name(point.collective.reduction, kReductions),
                             sweep.operation.is_rooted() ? 0 : -1, sides[0], sides[1]));
}

void print_foot(const CollectiveFlags& flags, const Totals& totals) {
  if (flags.check)
    print_progress(fmt::format("# Out of bounds values : {} {}\n", totals.num_wrong,
                               totals.num_wrong == 0 ? "OK" : "FAILED"));
  print_progress(
      fmt::format("# Avg bus bandwidth    : {:.4g} (of all lines above: it depends on the range of sizes)\n",
                  totals.busbw_gb_s / static_cast<double>(std::max<int64_t>(totals.num_values, 1))));
}

// Opens the study that `flags` ask for, on rank 0. Collective.
std::optional<Study> open_study(const CollectiveFlags& flags, const Ranks& ranks, const Preflight& checked,
                                const Communicator& comm, const Resources& resources) {
  std::optional<Study> study;
  if (flags.output.empty()) return study;
  Environment environment = describe_environment(*ranks.world, checked.device, resources);
  together(*ranks.world, [&] {
    if (ranks.world->rank() != 0) return;
    // Study::create names --resume, which this command does not have.
    if (file_exists(flags.output) || file_exists(journal_path(flags.output)))
      throw UsageError(flags.output + " exists; choose another output");
    environment.command_line = command_line();
    environment.transport = comm.transport();
    checked.keep_in(environment);
    study.emplace(Study::create(flags.output, environment));
  });
  return study;
}

int run(const CollectiveFlags& flags) {
  const Ranks ranks(flags.world);
  const HostGroup& world = *ranks.world;
  // Read and check the flags on all ranks, then make the communicator.
  SizeSweep sweep;
  together(world, [&] {
    refuse_operator_as_output(flags.output);
    sweep = read_sweep(flags, world.size());
  });
  const Preflight checked = preflight(flags.world, ranks, "");
  const at::Device device = checked.device;
  if (!device.is_cuda()) meter::set_limit(device_memory_bytes(device) / 10 * 8 / ranks.session->local_size());
  const specs::MpiServes mpi = mpi_serves(device, world);
  together(world, [&] { check_transport(sweep, transport_for(flags.world, device), mpi); });
  std::unique_ptr<Communicator> comm;  // errors are the same on all ranks
  const Resources resources = describe_resources(world, *ranks.session, device, {});
  together(world, [&] {
    comm = make_communicator(transport_for(flags.world, device), world, device, resources.communication());
  });

  std::optional<Study> study = open_study(flags, ranks, checked, *comm, resources);
  const bool prints = world.rank() == 0;
  checked.print_warnings(/*quiet=*/true);
  if (prints && world.size() == 1)
    log_line(fmt::format(
        "1 rank: nothing to communicate, so the bus bandwidth is 0; start several: mpirun -n RANKS "
        "shardmark collective {}",
        flags.operation));
  if (prints) print_head(*comm, flags, doctor::placement_line(checked.ranks));
  // Measure every size with every element type and reduction.
  Totals totals;
  comm->set_heartbeat(&ranks.heartbeat());
  Bench bench(flags, world, *comm, resources, ranks.heartbeat());
  for (const std::string& dtype : sweep.dtypes) {
    for (const std::string& reduction : sweep.reductions) {
      if (reduction == "average" && dtype == "int32") continue;
      for (const int64_t bytes : sweep.sizes) {
        Point point;
        point.workload = "collective";
        point.ranks = world.size();
        point.transport = comm->transport();
        point.sampling.warmup_steps = flags.warmup;
        point.sampling.min_steps = point.sampling.max_steps = flags.iterations;
        point.collective = {flags.operation, dtype, reduction, bytes, false, sweep.parts};
        in_step(
            world.size(), [&] { return ranks.heartbeat().place(); },
            [&] { measure_line(sweep, bench, point, world.size(), prints, totals, study); });
      }
    }
  }
  together(world, [&] {
    if (study) study->publish();
  });
  if (prints) print_foot(flags, totals);
  return world.broadcast(totals.num_wrong, 0) == 0 ? kDone : kWrong;
}

std::function<int()> define_collective(CLI::App& app) {
  auto flags = std::make_shared<CollectiveFlags>();
  add_value(app, "operation", flags->operation, Word{specs::operation_names()},
            "such as all_reduce; shardmark list names all")
      ->required();
  add_value(app, "-b,--minbytes", flags->least, values::kMessage, "smallest message")->default_str("32M");
  add_value(app, "-e,--maxbytes", flags->most, values::kMessage, "largest message")->default_str("32M");
  add_value(app, "-i,--stepbytes", flags->increment, values::kMessage, "increment between sizes, without -f")
      ->default_str("1M");
  add_value(app, "-f,--stepfactor", flags->factor, Whole{2, values::kMessage.most}, "factor between sizes");
  add_value(app, "-d,--datatype", flags->dtype, words_of(specs::dtype_names(), kDtypes), "element type")
      ->capture_default_str();
  add_value(app, "--op", flags->reduction, words_of(specs::reduction_names(), kReductions), "reduction")
      ->capture_default_str();
  app.add_option(
         "--parts", flags->parts,
         "of all_to_all_v, how much each rank gets: equal, \"hot(share=0.5)\", \"zipf(exponent=1)\", "
         "\"counts(file=x.csv)\"; of dispatch and combine: \"experts(width=7168, experts=256, top_k=8)\"")
      ->default_str("equal");
  add_value(app, "--iters", flags->iterations, values::kSteps, "timed operations of each size")
      ->capture_default_str();
  add_value(app, "-w,--warmup_iters", flags->warmup, values::kStepsOrNone, "warm-up operations of each size")
      ->capture_default_str();
  app.add_option("-c,--check", flags->check, "1: check every element, before timing; 0: do not")
      ->capture_default_str();
  app.add_option(
      "-o,--output", flags->output,
      "the study to write, such as results/x.h5, for report and compare; without it nothing is kept");
  add_world_flags(app, flags->world);
  return [flags] { return run(*flags); };
}

const Registration<CommandEntry> collective_command{
    "collective", {whole_command("collective")->description, define_collective}};

}  // namespace
}  // namespace shardmark
