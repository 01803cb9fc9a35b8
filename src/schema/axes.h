// The table of axes: one row for each parameter that a suite may list. Code that treats all axes alike
// (parsing, identity, stored columns, flags, headings of tables) loops over these rows and names no axis
// itself.
#pragma once

#include <array>
#include <set>
#include <string>
#include <variant>

#include "base/value.h"
#include "schema/point.h"

namespace shardmark {

// The member of a point in which the value of an axis is stored.
using AxisMember =
    std::variant<int64_t Point::*, std::string Point::*, Choice TrainingPoint::*,
                 std::string TrainingPoint::*, double TrainingPoint::*, int64_t TrainingPoint::*,
                 bool TrainingPoint::*, std::string CollectivePoint::*, int64_t CollectivePoint::*,
                 bool CollectivePoint::*>;
using AxisValue = std::variant<bool, int64_t, double, std::string, Choice>;

// What an axis accepts. The lists of accepted words and choices are in specs/ and strategies/;
// plan/axis_values.cpp finds them by the key of the axis.
struct Words {
  bool or_all = false;  // `all` on its own means every word
};
struct Choices {};
struct TrueOrFalse {};
struct Variables {};  // combinations of settings (settings.h), stored as text
using Accepted = std::variant<Words, Choices, TrueOrFalse, Variables, Whole, Real, Bytes>;

// A word that a suite may write in place of a number, such as `none` for 0.
struct NamedNumber {
  const char* word = nullptr;
  int64_t number = 0;
};

// The condition under which a value other than the default changes what is measured; plan/effects.cpp tests
// it. A row left at `unsaid` does not compile (static_assert below), so a new axis cannot forget to say
// it.
enum class Acts {
  unsaid,
  always,
  where_refused_else,  // make_plan skips the points where it cannot act, with a reason
  with_narrow_sums,    // gradients have 16 bits before they are summed
  with_blocks_to_recompute,
  with_gathers,
  with_tensor,   // tensor parallelism: several ranks share every block
  with_experts,  // expert parallelism: several ranks share the experts of a layer
  with_stages,
  with_two_orders,  // several pipeline stages and several copies of the model
  with_reductions,  // this and the next two: properties of the collective
  with_in_place,
  with_parts,
};

struct AxisRow {
  const char* key;  // key in suites and exclude rules, part of the identity, column of the study
  AxisMember member;
  Accepted accepted;
  std::array<NamedNumber, 3> named = {};
  const char* expected = nullptr;  // for error messages if numbers have names; {}: the range
  const char* unit = "";           // unit of the study's column
  const char* description;         // description of the study's column
  Acts acts = Acts::unsaid;
  bool required = false;
  const char* default_choice = nullptr;  // nullptr: the default of the member
  const char* scaling = nullptr;         // for a batch size: the value of TrainingPoint::scaling
  // The axis was added after the first studies were stored. At its default it is not part of the identity, so
  // that the ids of older points stay the same.
  bool is_later = false;
  // Order of the nested loops when a block is expanded: a lower number is an outer loop, and axes with equal
  // numbers nest in the order of their rows.
  int loop = 0;

  const char* phrase = nullptr;  // in the text of a point if the value is not the default
  // Heading of the axis's column in tables. nullptr: each table chooses its own heading and position.
  const char* heading = nullptr;
  bool is_section = false;  // a report has a section for each value
  bool is_layout = false;   // it says which ranks compute which part of a step
  // Cells with the default value are left empty.
  bool hides_default = false;
  std::string (*in_words)(int64_t) = nullptr;  // how a report shows a number other than the default

  // The flag of run and plan, which takes a list, and of train: "--model". nullptr: --set KEY=VALUE gives it,
  // because it is not needed daily, and a help of a hundred flags finds nobody's.
  const char* flag = nullptr;
  const char* help = nullptr;  // help text of the flag; nullptr: the description

  // Whether studies store the axis. The global batch appears in suites only: a point stores the batch of one
  // rank and its scaling.
  constexpr bool is_stored() const { return scaling == nullptr || scaling[0] != 's'; }
};

// Calls visit(member) with the member's own type. P is Point or const Point.
template <class P, class Visit>
auto visit_member(const AxisRow& axis, P& point, Visit&& visit) {
  return std::visit(
      [&](auto member) {
        if constexpr (requires { point.*member; })
          return visit(point.*member);
        else if constexpr (requires { point.training.*member; })
          return visit(point.training.*member);
        else
          return visit(point.collective.*member);
      },
      axis.member);
}

inline std::string recompute_in_words(int64_t every) {
  if (every == kGatheredInputs) return "gathered inputs";
  return every == 1 ? "full" : "every " + std::to_string(every) + " blocks";
}

inline std::string dispatch_in_words(int64_t neighbours) {
  return neighbours == 1 ? "per rank" : "per " + std::to_string(neighbours) + " ranks";
}

inline constexpr std::array kCommonAxes = {
    AxisRow{.key = "ranks",
            .member = &Point::ranks,
            .accepted = values::kRanks,
            .description = "ranks that took part",
            .acts = Acts::always,
            .loop = 4,
            .flag = "--ranks",
            .help = "rank counts: 1 2 4 8"},
    AxisRow{.key = "transport",
            .member = &Point::transport,
            .accepted = Choices{},
            .description = "how bytes moved between ranks",
            .acts = Acts::always,
            .loop = 4},
    AxisRow{.key = "environment",
            .member = &Point::environment,
            .accepted = Variables{},
            .description = "variables, threads and binding that its ranks were started with",
            .acts = Acts::always,
            .is_later = true,
            .phrase = " with {}"},
};

inline constexpr std::array kTrainingAxes = {
    AxisRow{.key = "model",
            .member = &TrainingPoint::model,
            .accepted = Choices{},
            .description = "model with its options",
            .acts = Acts::always,
            .required = true,
            .heading = "model",
            .is_section = true,
            .flag = "--model",
            .help = "such as gpt2 or \"resnet(layers=34)\""},
    AxisRow{.key = "data",
            .member = &TrainingPoint::data,
            .accepted = Choices{},
            .description = "data source with its options",
            .acts = Acts::always,
            .default_choice = "synthetic",
            .heading = "data",
            .is_section = true,
            .flag = "--data",
            .help = "such as \"text(files=README.md src/**/*.h)\""},
    AxisRow{.key = "strategy",
            .member = &TrainingPoint::strategy,
            .accepted = Choices{},
            .description = "strategy with its options",
            .acts = Acts::always,
            .required = true,
            .loop = 1,
            .flag = "--strategy",
            .help = "such as zero3 or \"fsdp(shard=gradients)\""},
    AxisRow{.key = "optimizer",
            .member = &TrainingPoint::optimizer,
            .accepted = Choices{},
            .description = "optimizer with its options",
            .acts = Acts::always,
            .default_choice = "sgd",
            .heading = "optimizer",
            .is_section = true,
            .flag = "--optimizer",
            .help = "such as sgd or \"adamw(lr=1e-5)\""},
    AxisRow{.key = "precision",
            .member = &TrainingPoint::precision,
            .accepted = Words{},
            .description = "type of arithmetic; master weights of bf16 and fp16 are fp32",
            .acts = Acts::always,
            .phrase = " {}",
            .heading = "precision",
            .flag = "--precision",
            .help = "precision of arithmetic; master weights stay fp32"},
    AxisRow{
        .key = "products",
        .member = &TrainingPoint::products,
        .accepted = Choices{},
        .description = "type of the matrix products of transformer blocks: that of the arithmetic, or fp8",
        .acts = Acts::where_refused_else,
        .default_choice = "compute",
        .is_later = true,
        .phrase = " products {}",
        .heading = "products",
        .hides_default = true},
    AxisRow{.key = "reduce_dtype",
            .member = &TrainingPoint::reduce_dtype,
            .accepted = Words{},
            .description = "type in which gradients are communicated: same as the arithmetic, or fp32",
            .acts = Acts::with_narrow_sums,
            .phrase = " reduced in {}",
            .heading = "reduced as",
            .hides_default = true},
    AxisRow{.key = "clip_norm",
            .member = &TrainingPoint::clip_norm,
            .accepted = values::kNormAboveZero,
            .named = {{{"none", 0}}},
            .description = "largest norm of the gradient; 0: not clipped",
            .acts = Acts::always,
            .phrase = " clipped at {}",
            .heading = "clip norm",
            .hides_default = true},
    AxisRow{.key = "checkpointing",
            .member = &TrainingPoint::recompute,
            .accepted = values::kEveryBlock,
            .named = {{{"none", 0}, {"full", 1}, {"gathered", kGatheredInputs}}},
            .expected = "none, full, n to recompute every n-th block, or gathered",
            .description = "every n-th block is recomputed in backward; 0: none; -1: the inputs that "
                           "sequence_parallel gathers are gathered again",
            .acts = Acts::with_blocks_to_recompute,
            .phrase = " checkpointing {}",
            .heading = "checkpointing",
            .hides_default = true,
            .in_words = recompute_in_words},
    AxisRow{.key = "kernels",
            .member = &TrainingPoint::kernels,
            .accepted = Words{},
            .description =
                "of the layers of a language model or of ResNet on a GPU in bf16: torch's, or fused ones",
            .acts = Acts::where_refused_else,
            .is_later = true,
            .phrase = " with {} kernels",
            .heading = "kernels",
            .hides_default = true},
    AxisRow{.key = "graph",
            .member = &TrainingPoint::graph,
            .accepted = TrueOrFalse{},
            .description = "whether a GPU is given a step as CUDA graphs, captured once and replayed",
            .acts = Acts::where_refused_else,
            .is_later = true,
            .phrase = " as CUDA graphs",
            .heading = "CUDA graphs",
            .hides_default = true},
    AxisRow{.key = "gathers",
            .member = &TrainingPoint::gathers,
            .accepted = Words{},
            .description = "of parameters: in the communicator of the reductions, or in their own",
            .acts = Acts::with_gathers,
            .is_later = true,
            .phrase = " with {} gathers",
            .heading = "gathers",
            .hides_default = true},
    AxisRow{.key = "batch_size",
            .member = &TrainingPoint::batch_size,
            .accepted = values::kBatch,
            .named = {{{"largest", kLargest}}},
            .expected = "{}, or largest (the most that fits into memory)",
            .unit = "samples",
            .description = "per rank and micro-batch",
            .acts = Acts::always,
            .scaling = "weak",
            .loop = 3,
            .flag = "--batch-size",
            .help = "samples per rank, of blocks with weak scaling: 32 64 128"},
    AxisRow{.key = "global_batch",
            .member = &TrainingPoint::batch_size,
            .accepted = values::kBatch,
            .unit = "samples",
            .description = "of all ranks in a step",
            .acts = Acts::always,
            .scaling = "strong",
            .loop = 3},
    AxisRow{.key = "accumulation",
            .member = &TrainingPoint::accumulation,
            .accepted = values::kAccumulation,
            .unit = "micro-batches",
            .description = "per step",
            .acts = Acts::always,
            .loop = 2,
            .heading = "accumulation",
            .is_section = true},
    AxisRow{.key = "tensor",
            .member = &TrainingPoint::tensor,
            .accepted = values::kLayoutRanks,
            .unit = "ranks",
            .description = "that share every block of the model: tensor parallelism",
            .acts = Acts::always,
            .is_later = true,
            .loop = 1,
            .phrase = " tensor {}",
            .heading = "tensor",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "sequence_parallel",
            .member = &TrainingPoint::sequence_parallel,
            .accepted = TrueOrFalse{},
            .description = "whether tensor ranks cut the tokens between what they share, too",
            .acts = Acts::with_tensor,
            .is_later = true,
            .loop = 1,
            .phrase = " sequence parallel",
            .heading = "sequence parallel",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "context",
            .member = &TrainingPoint::context,
            .accepted = values::kLayoutRanks,
            .unit = "ranks",
            .description = "that share every sequence: context parallelism",
            .acts = Acts::always,
            .is_later = true,
            .loop = 1,
            .phrase = " context {}",
            .heading = "context",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "expert",
            .member = &TrainingPoint::expert,
            .accepted = values::kLayoutRanks,
            .unit = "ranks",
            .description =
                "that share the experts of every layer, each with tokens of its own: expert parallelism",
            .acts = Acts::always,
            .is_later = true,
            .loop = 1,
            .phrase = " expert {}",
            .heading = "expert",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "dispatch",
            .member = &TrainingPoint::dispatch,
            .accepted = values::kLayoutRanks,
            .named = {{{"copy", kDispatchCopies}, {"rank", 1}}},
            .expected = "copy, rank, or n: once to each n neighbouring ranks, such as those of a node",
            .unit = "ranks",
            .description = "among which a token travels once, on its way to its experts: 1: to each rank; n: "
                           "to each n neighbouring ones, one of which passes it on; 0: once for each expert",
            .acts = Acts::with_experts,
            .is_later = true,
            .loop = 1,
            .phrase = " dispatch {}",
            .heading = "dispatch",
            .is_layout = true,
            .hides_default = true,
            .in_words = dispatch_in_words},
    AxisRow{.key = "pipeline",
            .member = &TrainingPoint::pipeline,
            .accepted = values::kLayoutRanks,
            .unit = "stages",
            .description = "that a copy of the model is cut into: pipeline parallelism",
            .acts = Acts::always,
            .is_later = true,
            .loop = 1,
            .phrase = " pipeline {}",
            .heading = "pipeline",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "pipeline_schedule",
            .member = &TrainingPoint::schedule,
            .accepted = Choices{},
            .description = "order in which the stages of a pipeline compute",
            .acts = Acts::with_stages,
            .default_choice = "1f1b",
            .is_later = true,
            .loop = 1,
            .phrase = " {}",
            .heading = "schedule",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "stages",
            .member = &TrainingPoint::stages,
            .accepted = Words{},
            .description = "what the stages of a pipeline have equally much of: flops or blocks",
            .acts = Acts::with_stages,
            .is_later = true,
            .loop = 1,
            .phrase = " stages by {}",
            .heading = "stages by",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "rank_order",
            .member = &TrainingPoint::rank_order,
            .accepted = Words{},
            .description = "dimensions of the layout, that of neighbouring ranks first",
            .acts = Acts::with_two_orders,
            .is_later = true,
            .loop = 1,
            .phrase = " ranks {}",
            .heading = "rank order",
            .is_layout = true,
            .hides_default = true},
    AxisRow{.key = "save",
            .member = &TrainingPoint::save,
            .accepted = Choices{},
            .description = "how checkpoints are written and read after the timed steps",
            .acts = Acts::where_refused_else,
            .default_choice = "none",
            .is_later = true,
            .phrase = " save {}",
            .heading = "save",
            .hides_default = true},
};

inline constexpr std::array kCollectiveAxes = {
    AxisRow{.key = "operation",
            .member = &CollectivePoint::operation,
            .accepted = Words{.or_all = true},
            .description = "collective",
            .acts = Acts::always,
            .required = true},
    AxisRow{.key = "dtype",
            .member = &CollectivePoint::dtype,
            .accepted = Words{},
            .description = "element type of the collective",
            .acts = Acts::always},
    AxisRow{.key = "reduction",
            .member = &CollectivePoint::reduction,
            .accepted = Words{},
            .description = "sum, average, min, max or none",
            .acts = Acts::with_reductions},
    AxisRow{.key = "bytes",
            .member = &CollectivePoint::bytes,
            .accepted = values::kMessage,
            .unit = "bytes",
            .description = "message, the larger of a rank's send and receive side; of dispatch and combine "
                           "the rank's tokens",
            .acts = Acts::always,
            .required = true,
            .loop = 5},
    AxisRow{.key = "in_place",
            .member = &CollectivePoint::in_place,
            .accepted = TrueOrFalse{},
            .description = "send and receive buffer are one",
            .acts = Acts::with_in_place},
    AxisRow{.key = "parts",
            .member = &CollectivePoint::parts,
            .accepted = Choices{},
            .description = "of all_to_all_v: how what a rank sends is shared out among the receivers; of "
                           "dispatch and combine: which tokens go to which experts",
            .acts = Acts::with_parts,
            .default_choice = "equal",
            .is_later = true,
            .phrase = " parts {}",
            .hides_default = true},
    AxisRow{.key = "beside",
            .member = &CollectivePoint::beside,
            .accepted = Choices{},
            .description = "what the ranks do at the same time",
            .acts = Acts::always,
            .default_choice = "alone",
            .is_later = true,
            .phrase = " beside {}",
            .hides_default = true},
};

template <class Axes>
constexpr bool all_say_where_they_act(const Axes& axes) {
  for (const AxisRow& axis : axes)
    if (axis.acts == Acts::unsaid) return false;
  return true;
}
static_assert(all_say_where_they_act(kCommonAxes) && all_say_where_they_act(kTrainingAxes) &&
              all_say_where_they_act(kCollectiveAxes));

// Calls visit(axis) for every row: the axes of both workloads, then those of training, then those of
// collectives.
template <class Visit>
void for_each_axis(Visit&& visit) {
  for (const AxisRow& axis : kCommonAxes) visit(axis);
  for (const AxisRow& axis : kTrainingAxes) visit(axis);
  for (const AxisRow& axis : kCollectiveAxes) visit(axis);
}

// The keys of the axes of a layout (AxisRow::is_layout), and others.
std::set<std::string> with_layout_axes(std::set<std::string> others = {});
// Throws ContractError if no axis has this key.
const AxisRow& axis_named(const std::string& key);
AxisValue value_of(const AxisRow& axis, const Point& point);
bool is_default(const AxisRow& axis, const Point& point);  // the value is the member's default
// Sets the member, and the scaling as well if the axis is one of the two forms of the batch size.
void set_value(const AxisRow& axis, const AxisValue& value, Point& point);
const char* workload_of(const AxisRow& axis);  // "training", "collective", or "" for both
// Whether the point has this axis: its workload does, and for the two forms of the batch size its scaling
// does.
bool has_axis(const Point& point, const AxisRow& axis);

}  // namespace shardmark
