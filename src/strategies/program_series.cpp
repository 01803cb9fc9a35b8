// Converts a program to rows of numbers, and rows back to a program.
#include "strategies/program_series.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

constexpr double kMost = 1e9;

int64_t whole(double value, double below) {
  if (!(value >= 0 && value < below) || value != static_cast<double>(static_cast<int64_t>(value)))
    throw UsageError("series program: " + std::to_string(value) + " is no whole number below " +
                     std::to_string(below));
  return static_cast<int64_t>(value);
}

void add_row(Series& series, What what, int64_t index, const CollectiveCall* call) {
  ++series.rows;
  for (const double value :
       {static_cast<double>(what), static_cast<double>(index),
        call == nullptr ? -1 : static_cast<double>(call->what), call == nullptr ? 0 : call->bytes,
        static_cast<double>(call == nullptr ? 0 : call->process_group.ranks),
        static_cast<double>(call == nullptr ? 0 : call->process_group.stride),
        static_cast<double>(call == nullptr ? -1 : call->root.value_or(-1))})
    series.values.push_back(value);
}

std::optional<int64_t> root_of(double value) {
  return value == -1 ? std::nullopt : std::optional(whole(value, kMost));
}

StepPart part_of(What what) {
  return what == What::data      ? StepPart::data
         : what == What::forward ? StepPart::forward
         : what == What::update  ? StepPart::update
                                 : StepPart::backward;
}

// A study does not store the phases of instructions, so they are derived. What moves after a batch was loaded
// belongs to forward, and what moves between forward and backward belongs to backward. Everything else
// belongs to the phase of the instruction that computed before it.
void add_parts(std::vector<Instruction>& instructions) {
  StepPart next = StepPart::update;
  for (auto i = instructions.rbegin(); i != instructions.rend(); ++i) {
    if (i->is_compute()) next = part_of(i->what);
    i->part = next;  // of the next block that computes
  }
  StepPart now = StepPart::data;
  for (Instruction& instruction : instructions) {
    if (instruction.is_compute())
      now = instruction.part;
    else if (now != StepPart::forward || instruction.part != StepPart::backward)
      instruction.part = now == StepPart::data ? StepPart::forward : now;
  }
}

}  // namespace

Series to_series(const Program& program) {
  Series series{"program", 0, kProgramColumns, {}};
  for (const Instruction& instruction : program.instructions) {
    if (instruction.is_compute()) add_row(series, instruction.what, instruction.index, nullptr);
    if (!instruction.is_communication()) continue;
    for (int64_t i = instruction.index; i < instruction.index + instruction.count; ++i)
      add_row(series, instruction.what, i,
              instruction.what == What::start ? &program.calls[static_cast<size_t>(i)] : nullptr);
  }
  return series;
}

Program program_of(const Series& series) {
  if (series.columns != kProgramColumns) throw UsageError("series program: not 7 columns");
  Program program;
  int64_t last_wait = -1;
  for (int64_t row = 0; row < series.rows; ++row) {
    const auto what = static_cast<What>(whole(series.at(row, 0), 9));
    const int64_t index = whole(series.at(row, 1), kMost);
    program.instructions.push_back({what, index});
    if (what == What::wait) last_wait = std::max(last_wait, index);
    if (what != What::start) continue;
    const int64_t code = whole(series.at(row, 2), static_cast<double>(specs::kNumCollectives));
    if (index != static_cast<int64_t>(program.calls.size()))
      throw UsageError("series program: operations are not numbered in order");
    program.calls.push_back({static_cast<Collective>(code),
                             series.at(row, 3),
                             {whole(series.at(row, 4), kMost), whole(series.at(row, 5), kMost)},
                             root_of(series.at(row, 6))});
  }
  if (last_wait >= static_cast<int64_t>(program.calls.size()))
    throw UsageError("series program: a wait for an operation that never starts");
  add_parts(program.instructions);
  return program;
}

}  // namespace shardmark::strategies
