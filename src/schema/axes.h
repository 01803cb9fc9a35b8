// The axes of a suite: one row for each. All code that treats every axis alike uses these rows: reading,
// expansion and exclusion of suites, flags, columns of studies and tables, a point's identity and text, the
// page.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "base/value.h"
#include "schema/point.h"

namespace shardmark {

// Where a point holds the value of an axis.
using AxisMember =
    std::variant<int64_t Point::*, std::string Point::*, Choice TrainingPoint::*,
                 std::string TrainingPoint::*, double TrainingPoint::*, int64_t TrainingPoint::*,
                 std::string CollectivePoint::*, int64_t CollectivePoint::*, bool CollectivePoint::*>;
using AxisValue = std::variant<bool, int64_t, double, std::string, Choice>;

// What an axis accepts. Words and choices have their tables in specs/ and strategies/; plan/axis_values.cpp
// finds them by the key.
struct Words {
  bool or_all = false;  // `all`, alone, stands for every word
};
struct Choices {};
struct TrueOrFalse {};
using Accepted = std::variant<Words, Choices, TrueOrFalse, Whole, Real, Bytes>;

// A word that a suite may write instead of a number.
struct NamedNumber {
  const char* word = nullptr;
  int64_t number = 0;
};

struct AxisRow {
  const char* key;  // in a suite, a rule of exclude and the identity; the name of the study's column
  AxisMember member;
  Accepted accepted;
  std::array<NamedNumber, 2> named = {};
  const char* expected = nullptr;  // what messages say is accepted, where numbers have names; {}: the range
  const char* unit = "";           // of the study's column
  const char* description;         // of that column
  bool required = false;           // in every block
  const char* default_choice = nullptr;  // any other default is the one of the member
  const char* scaling = nullptr;         // of a batch: what TrainingPoint::scaling becomes
  int loop = 0;  // expansion nests its loops by this number, then by the order of rows; the last is innermost

  const char* phrase = nullptr;   // in the text of a point, where the value is not the default
  const char* heading = nullptr;  // of a table's column; nullptr: each table names and places it by itself
  bool is_section = false;        // rows of a report that differ in it are sections of their own
  bool hides_default = false;     // its cells are empty at the default
  std::string (*in_words)(int64_t) = nullptr;  // how a report shows a number that is not the default

  const char* flag = nullptr;        // of plan and run, a list: "--models"
  const char* help = nullptr;        // of either flag; nullptr: the description
  const char* train_flag = nullptr;  // of train; nullptr: the key, "--reduce-dtype"

  // The global batch is written in a suite alone; a point has the batch of a rank, and its scaling.
  constexpr bool is_stored() const { return scaling == nullptr || scaling[0] != 's'; }
};

inline std::string recompute_in_words(int64_t every) {
  return every == 1 ? "full" : "every " + std::to_string(every) + ". block";
}

inline constexpr std::array kCommonAxes = {
    AxisRow{.key = "ranks",
            .member = &Point::ranks,
            .accepted = values::kRanks,
            .description = "ranks that took part",
            .loop = 4,
            .flag = "--ranks,--gpus",
            .help = "rank counts: 1 2 4 8"},
    AxisRow{.key = "transport",
            .member = &Point::transport,
            .accepted = Choices{},
            .description = "how bytes moved between ranks",
            .loop = 4},
};

inline constexpr std::array kTrainingAxes = {
    AxisRow{.key = "model",
            .member = &TrainingPoint::model,
            .accepted = Choices{},
            .description = "model with its options",
            .required = true,
            .heading = "model",
            .is_section = true,
            .flag = "--models",
            .help = "such as gpt2 or \"resnet(layers=34)\""},
    AxisRow{.key = "data",
            .member = &TrainingPoint::data,
            .accepted = Choices{},
            .description = "data source with its options",
            .default_choice = "synthetic",
            .heading = "data",
            .is_section = true,
            .help = "such as \"text(files=README.md src/**/*.h)\""},
    AxisRow{.key = "strategy",
            .member = &TrainingPoint::strategy,
            .accepted = Choices{},
            .description = "strategy with its options",
            .required = true,
            .loop = 1,
            .flag = "--strategies",
            .help = "such as zero3 or \"fsdp(shard=gradients)\""},
    AxisRow{.key = "optimizer",
            .member = &TrainingPoint::optimizer,
            .accepted = Choices{},
            .description = "optimizer with its options",
            .default_choice = "sgd",
            .heading = "optimizer",
            .is_section = true,
            .flag = "--optimizers",
            .help = "such as sgd or \"adamw(lr=1e-5)\""},
    AxisRow{.key = "precision",
            .member = &TrainingPoint::precision,
            .accepted = Words{},
            .description = "type of arithmetic; master weights of bf16 and fp16 are fp32",
            .phrase = " {}",
            .heading = "precision",
            .flag = "--precisions",
            .help = "precision of arithmetic; master weights stay fp32"},
    AxisRow{.key = "reduce_dtype",
            .member = &TrainingPoint::reduce_dtype,
            .accepted = Words{},
            .description = "type in which gradients are communicated: same as the arithmetic, or fp32",
            .phrase = " reduced in {}",
            .heading = "reduced as",
            .hides_default = true,
            .help = "type in which gradients are communicated"},
    AxisRow{.key = "clip_norm",
            .member = &TrainingPoint::clip_norm,
            .accepted = values::kNormAboveZero,
            .named = {{{"none", 0}}},
            .description = "largest norm of the gradient; 0: not clipped",
            .phrase = " clipped at {}",
            .heading = "clip norm",
            .hides_default = true,
            .help = "largest norm of the gradient; 0: any",
            .train_flag = "--clip"},
    AxisRow{.key = "checkpointing",
            .member = &TrainingPoint::recompute,
            .accepted = values::kEveryBlock,
            .named = {{{"none", 0}, {"full", 1}}},
            .expected = "none, full, or n to recompute every n-th block",
            .description = "every n-th block is recomputed in backward; 0: none",
            .phrase = " checkpointing every {}",
            .heading = "checkpointing",
            .hides_default = true,
            .in_words = recompute_in_words,
            .help = "activation checkpointing: recompute every n-th block in backward; 0: none",
            .train_flag = "--recompute"},
    AxisRow{.key = "batch_size",
            .member = &TrainingPoint::batch_size,
            .accepted = values::kBatch,
            .named = {{{"largest", kLargest}}},
            .expected = "{}, or largest (the most that fits into memory)",
            .unit = "samples",
            .description = "per rank and micro-batch",
            .scaling = "weak",
            .loop = 3,
            .flag = "--batch-sizes",
            .help = "samples per rank, of blocks with weak scaling: 32 64 128"},
    AxisRow{.key = "global_batch",
            .member = &TrainingPoint::batch_size,
            .accepted = values::kBatch,
            .unit = "samples",
            .description = "of all ranks in a step",
            .scaling = "strong",
            .loop = 3},
    AxisRow{.key = "accumulation",
            .member = &TrainingPoint::accumulation,
            .accepted = values::kAccumulation,
            .unit = "micro-batches",
            .description = "per step",
            .loop = 2,
            .heading = "accumulation",
            .is_section = true,
            .help = "micro-batches of a step"},
};

inline constexpr std::array kCollectiveAxes = {
    AxisRow{.key = "operation",
            .member = &CollectivePoint::operation,
            .accepted = Words{.or_all = true},
            .description = "collective",
            .required = true},
    AxisRow{.key = "dtype",
            .member = &CollectivePoint::dtype,
            .accepted = Words{},
            .description = "element type of the collective"},
    AxisRow{.key = "reduction",
            .member = &CollectivePoint::reduction,
            .accepted = Words{},
            .description = "sum, average, min, max or none"},
    AxisRow{.key = "bytes",
            .member = &CollectivePoint::bytes,
            .accepted = values::kMessage,
            .unit = "bytes",
            .description = "message, the larger of a rank's send and receive side",
            .required = true,
            .loop = 5},
    AxisRow{.key = "in_place",
            .member = &CollectivePoint::in_place,
            .accepted = TrueOrFalse{},
            .description = "send and receive buffer are one"},
};

// Calls visit(axis) for every row: those of both workloads first.
template <class Visit>
void for_each_axis(Visit&& visit) {
  for (const AxisRow& axis : kCommonAxes) visit(axis);
  for (const AxisRow& axis : kTrainingAxes) visit(axis);
  for (const AxisRow& axis : kCollectiveAxes) visit(axis);
}

// visit(member), with the member's own type. P: Point or const Point.
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

const AxisRow& axis_named(const std::string& key);
AxisValue value_of(const AxisRow& axis, const Point& point);
bool is_default(const AxisRow& axis, const Point& point);  // the member's default
void set_value(const AxisRow& axis, const AxisValue& value, Point& point);
const char* workload_of(const AxisRow& axis);  // "training", "collective", or "" for both
// Whether points of this workload and scaling have the axis.
bool has_axis(const Point& point, const AxisRow& axis);

}  // namespace shardmark
