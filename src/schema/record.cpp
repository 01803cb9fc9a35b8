// The names of outcomes, and the lookup of a series by its name.
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
                     "' is not an outcome; accepted: ok, skipped, out_of_memory, wrong, failed, timed_out");
  return static_cast<Outcome>(found - kOutcomes.begin());
}

const Series* Record::series(std::string_view name) const {
  const auto found =
      std::find_if(samples.begin(), samples.end(), [&](const Series& s) { return s.name == name; });
  return found == samples.end() ? nullptr : &*found;
}

}  // namespace shardmark
