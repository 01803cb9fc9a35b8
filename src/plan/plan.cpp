// Gives the expected cost of a point, matches the points of a suite with the ranks and devices at hand with
// the reason for each that cannot run, and shuffles them into the order of a run.
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "base/units.h"
#include "plan/effects.h"
#include "specs/collectives.h"
#include "specs/parts.h"
#include "specs/specs.h"
#include "specs/tokens.h"
#include "strategies/stages.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

Expectation expect_training(const Point& point) {
  const TrainingPoint& t = point.training;
  const specs::SharedTable table = specs::model_table(t.model);
  const auto batch = static_cast<double>(t.batch_size == kLargest ? 1 : t.batch_size);

  Expectation expectation;
  expectation.num_parameters = table->num_parameters();
  expectation.num_active_parameters = table->num_active_parameters();
  const strategies::Stages stages(point);
  const strategies::StagesCost cost = strategies::cost_of(stages, batch);
  expectation.cost = cost.cost;
  expectation.by_phase = strategies::step_traffic(stages.programs);
  expectation.activation_bytes = cost.activation_bytes;
  expectation.flops_per_step = table->step_flops() * batch * static_cast<double>(t.accumulation) /
                               static_cast<double>(point.ranks_per_copy());
  return expectation;
}

// Bytes that a rank sends, as the mean over ranks. A rule for the parts of an all_to_all_v is the same for
// every sender, so its mean equals that of equal parts. Only a file of counts gives senders different
// amounts. NaN for tokens that travel by nodes, because nobody knows yet which ranks are on a node.
double sent_bytes(const Point& point) {
  const CollectivePoint& c = point.collective;
  const specs::CollectiveRow& row = specs::operation(c.operation);
  const int64_t element = specs::dtype_bytes(c.dtype);
  if (row.has_parts && point.impossible.empty()) {
    const Choice parts = choice_from_text(c.parts);
    if (row.moves_tokens) {
      const specs::TokenExchange exchange(parts);
      if (exchange.once_per == specs::OncePer::node) return std::nan("");
      return specs::token_traffic(exchange, point.ranks, point.ranks, c.bytes / element / exchange.width)
                 .moved *
             static_cast<double>(exchange.width * element);
    }
    if (parts.name == "counts")
      return specs::share_out(parts, point.ranks, c.bytes / element, point.folder).moved() *
             static_cast<double>(element);
  }
  return static_cast<double>(c.bytes) * specs::ring_factor(row.what, point.ranks);
}

}  // namespace

Expectation expect(const Point& point) {
  if (point.workload == "training" || point.workload == "train") return expect_training(point);
  Expectation expectation;
  expectation.cost.traffic_bytes = sent_bytes(point);
  expectation.cost.num_operations = 1;
  return expectation;
}

Expectations expect_all(const std::vector<Point>& plan) {
  Expectations all;
  for (const Point& point : plan)
    if (point.impossible.empty() && point.repeat == 0) all.emplace_hint(all.end(), &point, expect(point));
  return all;
}

namespace {

// The layout of a point as text if it can run and fits; otherwise empty.
std::string layout_if_it_fits(Point point, double memory_bytes) {
  if (!strategies::layout_impossible(point).empty() || !divide_batch(point).empty() ||
      !strategy_reason(point).empty())
    return {};
  const Expectation needed = expect(point);
  if (needed.total_bytes() > memory_bytes) return {};
  std::string layout;
  const TrainingPoint& t = point.training;
  for (const auto& [axis, ranks] :
       {std::pair("tensor", t.tensor), {"pipeline", t.pipeline}, {"expert", t.expert}})
    if (ranks > 1) layout += fmt::format("{}{} {}", layout.empty() ? "" : " x ", axis, ranks);
  return fmt::format("{} would fit ({} with activations)", layout, format_bytes(needed.total_bytes()));
}

// The point's number of ranks that share experts, and larger ones that divide the experts of its model. With
// tensor parallelism, 1 alone unless the point has sequence_parallel.
std::vector<int64_t> expert_ranks_to_try(const Point& point, int64_t tensor) {
  if (tensor > 1 && !point.training.sequence_parallel) return {1};
  std::vector<int64_t> ranks = {point.training.expert};
  if (tensor > 1 && ranks.front() > 1) ranks.push_back(1);  // each expert is cut
  if (const OptionValue* const option = point.training.model.options.find("experts")) {
    const auto experts = option->get<int64_t>();
    for (int64_t more = ranks.front() + 1; more <= std::min(experts, point.ranks); ++more)
      if (experts % more == 0) ranks.push_back(more);
  }
  return ranks;
}

// Searches the layouts of the same ranks for one that fits, from the fewest ranks per copy of the model
// upwards, with as many tensor-parallel ranks as possible before pipeline stages, and with as few ranks that
// share experts as possible, which needs no more ranks per copy. Returns it as text; empty if none fits.
std::string layout_that_fits(const Point& point, double memory_bytes) {
  constexpr int64_t kMostTensor = 8;  // tensor parallelism within a node of 8 ranks
  for (int64_t copy = point.ranks_per_copy(); copy <= point.ranks; ++copy) {
    if (point.ranks % copy != 0 || copy % point.training.context != 0) continue;
    const bool is_own = copy == point.ranks_per_copy();  // then only experts are left to try
    const int64_t parts = copy / point.training.context;
    for (int64_t tensor = std::min(parts, kMostTensor); tensor >= 1; --tensor) {
      if (parts % tensor != 0 || (is_own && tensor != point.training.tensor)) continue;
      for (const int64_t expert : expert_ranks_to_try(point, tensor)) {
        if (is_own && expert == point.training.expert) continue;
        Point other = point;
        other.training.tensor = tensor;
        other.training.pipeline = parts / tensor;
        other.training.expert = expert;
        if (expert == 1 || other.training.dispatch > 1) other.training.dispatch = kDispatchCopies;
        if (other.training.scaling == "strong") other.training.batch_size = point.global_batch();
        if (std::string layout = layout_if_it_fits(std::move(other), memory_bytes); !layout.empty())
          return layout;
      }
    }
  }
  return {};
}

}  // namespace

std::string memory_reason(const Point& point, int64_t memory_per_rank_bytes) {
  const auto memory_bytes = static_cast<double>(memory_per_rank_bytes);
  if (memory_bytes == 0) return {};
  const double needed = expect(point).cost.state_bytes();
  if (needed <= memory_bytes) return {};
  const std::string reason = fmt::format("the state of a rank needs {}, a rank has {}", format_bytes(needed),
                                         format_bytes(memory_bytes));
  const std::string other = layout_that_fits(point, memory_bytes);
  return other.empty() ? reason : reason + "; " + other;
}

std::string gpu_memory_reason(int64_t limit_bytes) {
  if (limit_bytes == 0 || limit_bytes >= kLeastGpuMemoryBytes) return "";
  return fmt::format(
      "a memory limit of {} is too small for GPUs, where workspaces of CUDA's libraries count as well: give "
      "{} or more (--memory 1GiB), or run on CPUs (--device cpu)",
      format_bytes(static_cast<double>(limit_bytes)),
      format_bytes(static_cast<double>(kLeastGpuMemoryBytes)));
}

namespace {

std::string data_mismatch(const TrainingPoint& t) {
  const specs::SampleShape sample = specs::model_table(t.model)->sample;
  const std::string reason = specs::data_specs().at(t.data.name).mismatch(sample);
  if (!reason.empty()) return fmt::format("data {}: {}", t.data.name, reason);
  const std::string of_documents = specs::documents_reason(t.data, sample);
  return of_documents.empty() ? "" : fmt::format("data {}: {}", t.data.name, of_documents);
}

}  // namespace

std::string collective_reason(const Point& point) {
  const CollectivePoint& c = point.collective;
  const specs::CollectiveRow& row = specs::operation(c.operation);
  const int64_t elements = c.bytes / specs::dtype_bytes(c.dtype),
                least = row.is_cut() && !row.moves_tokens ? point.ranks : 1;
  if (elements < least)
    return fmt::format("{} hold {} {}, {} on {} ranks needs {}", format_bytes(static_cast<double>(c.bytes)),
                       elements, c.dtype, c.operation, point.ranks, least);
  if (c.dtype == "int32" && c.reduction == "average") return "the average of int32 values is not an int32";
  if (row.moves_tokens) {
    if (c.dtype == "int32")
      return c.operation + " moves tokens, which a combine multiplies by fractions; take another type";
    if (c.beside != "alone")
      return c.operation + " is measured alone; take operation all_to_all_v, or leave out beside";
  }
  try {
    const Choice parts = choice_from_text(c.parts);
    if (parts.name == "counts") specs::share_out(parts, point.ranks, elements, point.folder);
    if (parts.name == "experts")
      return specs::exchange_impossible(specs::TokenExchange(parts), point.ranks, elements);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

namespace {

std::string transport_reason(const Point& point, const World& world) {
  const std::string& named = point.transport.empty() ? world.transport : point.transport;
  if (named.empty()) return {};
  const Choice transport = choice_from_text(named);
  if (transport.name == "mpi") return mpi_reason(point, world.mpi);
  if (transport.name != "hierarchical" || transport.options.at("form") != "sharded") return {};
  const auto given = transport.options.at("ranks_per_node").get<int64_t>();
  const int64_t ranks_per_node = given > 0 ? given : world.ranks_per_node;
  if (ranks_per_node == 0 || point.ranks <= ranks_per_node || point.ranks % ranks_per_node == 0) return {};
  return fmt::format("form sharded of a hierarchical all-reduce needs full nodes: {} ranks, {} per node",
                     point.ranks, ranks_per_node);
}

// Tokens that travel by nodes need as many ranks on each.
std::string nodes_reason(const Point& point, const World& world) {
  if (!specs::operation(point.collective.operation).moves_tokens) return {};
  const specs::TokenExchange exchange(choice_from_text(point.collective.parts));
  const int64_t per_node = world.ranks_per_node;
  if (exchange.once_per != specs::OncePer::node || per_node == 0 || point.ranks <= per_node ||
      point.ranks % per_node == 0)
    return {};
  return fmt::format("parts experts(once_per=node) needs full nodes: {} ranks, {} per node", point.ranks,
                     per_node);
}

// Fills in the point's number of ranks and batch per rank. Returns why that is not possible; empty if it is.
std::string place(Point& point, const World& world) {
  if (point.ranks == kWorldSize) point.ranks = world.ranks;
  std::string undivided = point.workload == "training" ? divide_batch(point) : "";
  if (point.ranks > world.ranks)
    return fmt::format("needs {} ranks, the world has {}", point.ranks, world.ranks);
  return undivided;
}

// Returns why a point whose ranks and batch are known cannot run; empty if it can. Only the first reason is
// given. The layout is checked before the strategy, because the strategy's program needs a possible layout,
// and the memory at the end, because it needs the program.
std::string reason_against(const Point& point, const World& world) {
  if (std::string reason = transport_reason(point, world); !reason.empty()) return reason;
  if (point.workload != "training") {
    const std::string reason = collective_reason(point);
    return reason.empty() ? nodes_reason(point, world) : reason;
  }
  if (point.training.batch_size == kLargest && point.sampling.duration_s > 0)
    return "a search for the largest batch tries many batches, and each would run for the whole duration";
  const auto& native = world.precisions;
  if (!native.empty() && std::find(native.begin(), native.end(), point.training.precision) == native.end())
    return "no native support of " + point.training.precision + " here: its time would be meaningless";
  for (std::string reason :
       {strategies::layout_impossible(point), strategies::serving_impossible(point, world.serving)})
    if (!reason.empty()) return reason;
  for (std::string reason :
       {data_mismatch(point.training), strategy_reason(point), kernels_reason(point, world.on_cpu),
        products_reason(point), graph_reason(point, world.on_cpu), save_reason(point)})
    if (!reason.empty()) return reason;
  return memory_reason(point, world.memory_per_rank_bytes);
}

}  // namespace

std::string mpi_reason(const Point& point, specs::MpiServes serves) {
  using specs::MpiServes;
  const CollectivePoint& c = point.collective;
  const bool trains = point.workload != "collective";
  int64_t most_elements = trains ? specs::model_table(point.training.model)->num_parameters()
                                 : c.bytes / specs::dtype_bytes(c.dtype);
  if (!trains && specs::operation(c.operation).moves_tokens) {
    const specs::TokenExchange exchange(choice_from_text(c.parts));
    if (!specs::exchange_impossible(exchange, point.ranks, most_elements).empty())
      return {};  // it says so itself
    most_elements =
        exchange.width *
        specs::token_traffic(exchange, point.ranks, point.ranks, most_elements / exchange.width).logical;
  }
  if (most_elements > std::numeric_limits<int>::max())
    return fmt::format(
        "transport mpi: MPI counts elements in 32 bits, and {} has more; take {}transport pt2pt",
        trains ? "the model" : "the message", trains ? "" : "a smaller one, or ");
  if (serves == MpiServes::everything) return {};
  if (serves == MpiServes::nothing)
    return "transport mpi: this MPI library does not take GPU memory (MPIX_Query_cuda_support): use a "
           "CUDA-aware one, or transport nccl";
  if (trains || c.beside != "alone")
    return "transport mpi overlaps nothing on GPUs: Open MPI's non-blocking reductions do not take GPU "
           "memory; use transport nccl";
  if (specs::operation(c.operation).reduces && specs::dtype_bytes(c.dtype) == 2)
    return "transport mpi does not reduce 16-bit types on GPUs: MPI has no such types, and its libraries "
           "reduce them by a function for host memory";
  return {};
}

std::string divide_batch(Point& point) {
  TrainingPoint& t = point.training;
  if (t.scaling != "strong") return {};
  const int64_t global = t.batch_size, copies = point.data_ranks(), parts = copies * t.accumulation;
  if (parts == 0) return {};  // reason_against() reports the layout
  t.batch_size = global % parts == 0 ? global / parts : 0;
  if (t.batch_size > 0) return {};
  const char* const whose = point.ranks_per_copy() > 1 ? "data-parallel rank" : "rank";
  return fmt::format("global batch {} is not divisible by {} {}{}{}", global, copies, whose,
                     copies == 1 ? "" : "s",
                     t.accumulation > 1 ? fmt::format(" x {} micro-batches", t.accumulation) : "");
}

std::string strategy_reason(const Point& point) {
  const TrainingPoint& t = point.training;
  const strategies::Strategy& how = strategies::strategy(t.strategy.name);
  const strategies::RankStep rank_step(point);
  const strategies::StepInput& input = rank_step.input();
  if (std::string reason = how.impossible(input); !reason.empty() || !input.own_gathers) return reason;
  if (t.strategy.name == "auto")
    return "auto may choose a strategy that gathers nothing; take gathers shared";
  return gathers_reason(point);
}

std::string gathers_reason(const Point& point) {
  const TrainingPoint& t = point.training;
  const strategies::Strategy& how = strategies::strategy(t.strategy.name);
  const strategies::RankStep rank_step(point);
  if (!how.impossible(rank_step.input()).empty()) return {};  // strategy_reason() reports it
  const auto is_gather = [](const auto& c) {
    return c.lane == strategies::kGatherLane && c.process_group.ranks > 1;
  };
  const auto calls = how.step(rank_step.input()).calls;
  if (std::any_of(calls.begin(), calls.end(), is_gather)) return {};
  return fmt::format("{} on {} rank{} gathers no parameters; take gathers shared", t.strategy.name,
                     point.ranks, point.ranks == 1 ? "" : "s");
}

std::string kernels_reason(const Point& point, bool on_cpu) {
  const TrainingPoint& t = point.training;
  if (t.kernels != "fused") return {};
  if (on_cpu) return "fused kernels are a GPU's, and these ranks compute on the CPU; take kernels torch";
  if (t.precision != "bf16")
    return "fused kernels compute in bf16, not in " + t.precision + "; take kernels torch";
  const specs::SharedTable table = specs::model_table(t.model);
  if (table->sample.kind == specs::SampleShape::Kind::tokens || table->has_local_norms) return {};
  return "fused kernels are those of language models and of resnet with batch_norm local, and " +
         to_text(t.model) + " is neither; take kernels torch";
}

// The other precisions prove strategies and layouts, on any device.
std::string products_reason(const Point& point) {
  const TrainingPoint& t = point.training;
  if (t.products.name != "fp8") return {};
  if (specs::model_table(t.model)->sample.kind != specs::SampleShape::Kind::tokens)
    return "fp8 products are those of transformer blocks, and " + t.model.name +
           " has none; take products compute";
  if (t.precision != "bf16" && t.precision != "fp32" && t.precision != "fp64")
    return fmt::format("fp8 products are computed beside bf16, or fp32 and fp64, and not {}; take bf16",
                       t.precision);
  return {};
}

// A CUDA graph replays the same random numbers every time, so dropout is refused. Graphs that contain NCCL's
// calls have not been tested on any GPU, so they are refused, too.
std::string graph_reason(const Point& point, bool on_cpu) {
  const TrainingPoint& t = point.training;
  if (!t.graph) return {};
  if (on_cpu) return "CUDA graphs are a GPU's, and these ranks compute on the CPU; take graph false";
  if (const auto* dropout = t.model.options.find("dropout"); dropout != nullptr && dropout->get<double>() > 0)
    return "a graph would drop the same elements in every step; take dropout 0, or graph false";
  if (t.model.options.contains("experts"))
    return "a mixture's tokens may be counted by the host, for which graphs do not wait; take graph false";
  const strategies::RankStep rank_step(point);
  if (t.strategy.name != "auto" &&
      strategies::strategy(t.strategy.name).step(rank_step.input()).calls.empty())
    return {};
  return fmt::format("{} communicates in a step, which graphs do not hold; take single, or graph false",
                     t.strategy.name);
}

std::string save_reason(const Point& point) {
  const TrainingPoint& t = point.training;
  if (t.save.name == "none") return {};
  if (t.batch_size == kLargest)
    return "a search for the largest batch tries many batches, and the state is the same with each; take "
           "save none";
  if (t.strategy.name != "single" || point.data_ranks() == 1) return {};
  return "replicas of single train on their own and have no common state to save; take one rank, or ddp";
}

namespace {

// Removes duplicates: blocks of a suite may overlap, and different values may lead to the same step. What is
// asked for twice is measured once.
std::vector<Point> points_once(const Suite& suite, const World& world, std::vector<std::string>& notes) {
  std::vector<Point> points = suite.points;
  for (Point& point : points) point.impossible = place(point, world);
  // Idle values are settled first: points that become equal by it have one id, and one of them is kept.
  settle_idle_values(points, suite.blocks, notes);
  std::vector<Point> once;
  std::set<std::string> seen;
  for (Point& point : points) {
    if (point.impossible.empty()) point.impossible = reason_against(point, world);
    if (seen.insert(point_id(point) + point.impossible).second) once.push_back(std::move(point));
  }
  const std::vector<SamePoints> same = same_as_earlier(once);
  if (!same.empty())
    notes.push_back(fmt::format(
        "{} point{} the same step as another one, which is measured once, such as \"{}\" as \"{}\"",
        same.size(), same.size() == 1 ? " is" : "s are each", to_text(once[same.front().point]),
        to_text(once[same.front().earlier])));
  for (auto later = same.rbegin(); later != same.rend(); ++later)
    once.erase(once.begin() + static_cast<std::ptrdiff_t>(later->point));
  return once;
}

}  // namespace

std::vector<Point> make_plan(const Suite& suite, const World& world, std::vector<std::string>* notes) {
  std::vector<std::string> unread;
  const std::vector<Point> once = points_once(suite, world, notes == nullptr ? unread : *notes);
  std::vector<Point> plan;
  plan.reserve(once.size() * static_cast<size_t>(suite.repeats));
  for (int64_t repeat = 0; repeat < suite.repeats; ++repeat)
    for (const auto& point : once) {
      plan.push_back(point);
      plan.back().repeat = repeat;
    }
  return plan;
}

// Points are shuffled within each repetition, so that a slow drift of the machine does not look like the
// effect of an axis. Fisher-Yates shuffle, written out because the result of std::shuffle may differ between
// standard libraries. The bias of the remainder is below points / 2^64.
std::vector<size_t> run_order(const Suite& suite, const std::vector<Point>& plan) {
  std::vector<size_t> order(plan.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!suite.shuffle) return order;
  std::mt19937_64 random(static_cast<uint64_t>(suite.seed));
  for (size_t begin = 0, end = 0; begin < plan.size(); begin = end) {
    while (end < plan.size() && plan[end].repeat == plan[begin].repeat) ++end;
    for (size_t i = end - 1; i > begin; --i) std::swap(order[i], order[begin + random() % (i - begin + 1)]);
  }
  return order;
}

double time_limit_s(const Point& point) {
  if (!point.impossible.empty()) return 0;
  const Sampling& s = point.sampling;
  return s.duration_s > 0 ? s.duration_s : s.time_limit_s;
}

std::string extent_text(const std::vector<Point>& points) {
  double sum_s = 0;
  for (const Point& point : points) sum_s += time_limit_s(point);
  return fmt::format("{} point{}, at most {} of timed steps", points.size(), points.size() == 1 ? "" : "s",
                     format_seconds(sum_s));
}

}  // namespace shardmark
