// Programs as they are stored.
#include "laws/program.h"

#include <algorithm>

#include "base/error.h"
#include "laws/vocabulary.h"

namespace shardmark::laws {
namespace {

double code_of(const std::string& name) {
  const auto& laws = collective_laws();
  const auto found =
      std::find_if(laws.begin(), laws.end(), [&](const auto& law) { return law.name == name; });
  ENSURE(found != laws.end(), "an operation that laws/vocabulary.cpp does not know");
  return static_cast<double>(found - laws.begin());
}

int64_t whole(double value, double below) {
  if (!(value >= 0 && value < below) || value != static_cast<double>(static_cast<int64_t>(value)))
    throw UsageError("series program: " + std::to_string(value) + " is no whole number below " +
                     std::to_string(below));
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t Program::start(StartedOperation operation) {
  operations.push_back(std::move(operation));
  add(Moment::What::start, static_cast<int64_t>(operations.size()) - 1);
  return moments.back().index;
}

Series to_series(const Program& program) {
  Series series{"program", static_cast<int64_t>(program.moments.size()), kProgramColumns, {}};
  for (const Moment& moment : program.moments) {
    StartedOperation operation{"", 0, 0, 0, -1};
    double code = -1;
    if (moment.what == Moment::What::start) {
      operation = program.operations[static_cast<size_t>(moment.index)];
      code = code_of(operation.name);
    }
    for (double value : {static_cast<double>(moment.what), static_cast<double>(moment.index), code,
                         operation.bytes, static_cast<double>(operation.ranks),
                         static_cast<double>(operation.stride), static_cast<double>(operation.root)})
      series.values.push_back(value);
  }
  return series;
}

Program program_of(const Series& series) {
  constexpr double kMost = 1e9;
  if (series.columns != kProgramColumns) throw UsageError("series program: not 7 columns");
  Program program;
  int64_t last_wait = -1;
  for (int64_t row = 0; row < series.rows; ++row) {
    const auto what = static_cast<Moment::What>(whole(series.at(row, 0), 6));
    const int64_t index = whole(series.at(row, 1), kMost);
    program.add(what, index);
    if (what == Moment::What::wait) last_wait = std::max(last_wait, index);
    if (what != Moment::What::start) continue;
    const auto& laws = collective_laws();
    const auto code = static_cast<size_t>(whole(series.at(row, 2), static_cast<double>(laws.size())));
    if (index != static_cast<int64_t>(program.operations.size()))
      throw UsageError("series program: operations are not numbered in order");
    program.operations.push_back({laws[code].name, series.at(row, 3), whole(series.at(row, 4), kMost),
                                  whole(series.at(row, 5), kMost), whole(series.at(row, 6) + 1, kMost) - 1});
  }
  if (last_wait >= static_cast<int64_t>(program.operations.size()))
    throw UsageError("series program: a wait for an operation that never starts");
  return program;
}

}  // namespace shardmark::laws
