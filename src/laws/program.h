// What one rank does in one step of training, in order: blocks that compute, operations that start, waits for
// them. A strategy's law makes it by formula, a training point records it as it happens, and tests compare
// the two; a simulation of it (analysis/predict/) says how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/record.h"

namespace shardmark::laws {

struct StartedOperation {
  std::string name;    // a collective: all_reduce ...
  double bytes = 0;    // payload: the larger of a rank's two sides
  int64_t ranks = 1;   // that take part
  int64_t stride = 1;  // between neighbours of them: 1 is a group of consecutive ranks
  int64_t root = -1;   // of a broadcast or reduction, among them
  bool operator==(const StartedOperation&) const = default;
};

struct Moment {
  // data: a micro-batch begins. forward, backward: of a block. update: the optimizer's. All of these last
  // until the next of them; start and wait take no time of their own.
  enum class What { data, forward, backward, update, start, wait };
  What what = What::data;
  int64_t index = 0;  // of the block or operation
  bool operator==(const Moment&) const = default;
};

// Steps repeat: a wait that comes before its operation's start is for that operation of the step before.
struct Program {
  std::vector<StartedOperation> operations;  // in the order in which they start
  std::vector<Moment> moments;

  void add(Moment::What what, int64_t index = 0) { moments.push_back({what, index}); }
  int64_t start(StartedOperation operation);  // returns its index
  bool operator==(const Program&) const = default;
};

// As a study keeps it: the series "program", [moment, kProgramColumns] (schema/fields.h says what each column
// is). Throws UsageError where a series is no program.
inline constexpr int64_t kProgramColumns = 7;
Series to_series(const Program& program);
Program program_of(const Series& series);

}  // namespace shardmark::laws
