// Checks the numbers of a record against the ranges in the table of axes.
#include "schema/possible.h"

#include <fmt/format.h>

#include <limits>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "schema/axes.h"

namespace shardmark {
namespace {

constexpr int64_t kMostRepeats = std::numeric_limits<int32_t>::max();

// Whether the axis accepts the number: as one of its named numbers, such as `largest` for a batch size, or
// because it lies in the range. An axis without a range accepts every number.
template <class Number>
bool is_accepted(const AxisRow& axis, Number number) {
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && number == static_cast<Number>(named.number)) return true;
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.least; })
          return number >= static_cast<Number>(kind.least) && number <= static_cast<Number>(kind.most);
        else
          return true;
      },
      axis.accepted);
}

[[noreturn]] void refuse(const char* what, const std::string& value) {
  throw UsageError(fmt::format("{} is {}, which no run has", what, value));
}

void require_axis(const AxisRow& axis, const Point& point) {
  if (!axis.is_stored()) return;
  visit_member(axis, point, [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
      if (!is_accepted(axis, value)) refuse(axis.key, fmt::format("{}", value));
  });
}

}  // namespace

void require_possible(const Record& record) {
  const Point& point = record.point;
  for (const AxisRow& axis : kCommonAxes) require_axis(axis, point);
  if (point.repeat < 0 || point.repeat > kMostRepeats) refuse("repeat", std::to_string(point.repeat));
  if (!is_known_workload(point)) return;  // a workload of a later program
  if (point.workload == "collective")
    for (const AxisRow& axis : kCollectiveAxes) require_axis(axis, point);
  else
    for (const AxisRow& axis : kTrainingAxes) require_axis(axis, point);
}

}  // namespace shardmark
