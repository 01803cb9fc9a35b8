// Names of outcomes, and looking up a series.
#include "schema/record.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace shardmark {
namespace {
constexpr std::array<std::string_view, 6> kOutcomes = {"ok",    "skipped", "out_of_memory",
                                                       "wrong", "failed",  "timed_out"};
}  // namespace

std::string_view to_text(Outcome outcome) { return kOutcomes.at(static_cast<size_t>(outcome)); }

Outcome outcome_from_text(std::string_view text) {
  const auto found = std::find(kOutcomes.begin(), kOutcomes.end(), text);
  if (found == kOutcomes.end())
    throw UsageError("'" + std::string(text) +
                     "' is no outcome; accepted: ok, skipped, out_of_memory, wrong, failed, timed_out");
  return static_cast<Outcome>(found - kOutcomes.begin());
}

bool append_columns(std::vector<Series>& samples, const std::vector<Series>& more) {
  std::vector<Series> grown = samples;
  for (const Series& added : more) {
    const auto found = std::find_if(grown.begin(), grown.end(),
                                    [&](const Series& series) { return series.name == added.name; });
    if (found == grown.end()) {
      grown.push_back(added);
      continue;
    }
    if (found->rows != added.rows) return false;
    std::vector<double> values;  // rows are ranks: every row grows at its end
    values.reserve(found->values.size() + added.values.size());
    for (int64_t row = 0; row < found->rows; ++row) {
      const auto old = found->values.begin() + row * found->columns;
      const auto end = added.values.begin() + row * added.columns;
      values.insert(values.end(), old, old + found->columns);
      values.insert(values.end(), end, end + added.columns);
    }
    found->values = std::move(values);
    found->columns += added.columns;
  }
  samples = std::move(grown);
  return true;
}

const Series* Record::series(std::string_view name) const {
  const auto found =
      std::find_if(samples.begin(), samples.end(), [&](const Series& s) { return s.name == name; });
  return found == samples.end() ? nullptr : &*found;
}

}  // namespace shardmark
