// Which values of a point change what is measured. A value that changes nothing is idle: a sweep over such
// values would measure one step several times, and who writes one expects an effect that is not there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/suite.h"
#include "schema/axes.h"

namespace shardmark {

// A value other than its default that changes nothing.
struct IdleValue {
  const AxisRow* axis = nullptr;
  std::string option;  // of the choice on that axis: "prefetch"; empty: the axis itself
  std::string value;   // as text
  std::string reason;  // one line: where it would act, and what to do
  // As messages say it: "pipeline_schedule gpipe", "prefetch 2 of fsdp". values: one, or several.
  std::string text(const Point& point, const std::string& values) const;
};

// Why no value of the axis does anything at this point, and what to do; empty where it acts.
std::string why_idle(const AxisRow& axis, const Point& point);
inline bool acts(const AxisRow& axis, const Point& point) { return why_idle(axis, point).empty(); }
std::string value_text(const AxisRow& axis, const Point& point);

// The values of a point on known ranks. Empty for a point that only has values which act.
std::vector<IdleValue> idle_values(const Point& point);
// The point with the defaults in place of these.
Point without(const std::vector<IdleValue>& values, Point point);

// Settles idle values of a suite on known ranks. One in a list becomes the default, so that points of
// the list are one; an idle value that stands alone in its block makes the point impossible, unless it acts
// at another point of the block. blocks: the number of each point's block.
// notes: what was joined, a line for each axis or option.
void settle_idle_values(std::vector<Point>& points, const std::vector<size_t>& blocks,
                        std::vector<std::string>& notes);

// Possible points whose step, or whose exchange, equals that of an earlier one, though an axis or an
// option differs: a group as large as all ranks, a bucket larger than the model. Indices, by the later one.
struct SamePoints {
  size_t point, earlier;
};
std::vector<SamePoints> same_as_earlier(const std::vector<Point>& points);

// For a run of one point. UsageError: a value is idle. called(axis): what the user wrote, "--stages".
void refuse_idle_values(const Point& point, const std::function<std::string(const AxisRow&)>& called);

}  // namespace shardmark
