// Finds the values of a point that do not change what is measured: they are idle. Sweeping over idle values
// would measure the same step several times, and a user who writes one expects an effect that is not there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/suite.h"
#include "schema/axes.h"

namespace shardmark {

// A value that is not the default and changes nothing.
struct IdleValue {
  const AxisRow* axis = nullptr;
  // The option of the choice on that axis, such as "prefetch". Empty: the value of the axis itself.
  std::string option;
  std::string value;   // as text
  std::string reason;  // one line: where it would act, and what to do
  // The value as messages name it: "pipeline_schedule gpipe", "prefetch 2 of fsdp". `values` is one value or
  // several.
  std::string text(const Point& point, const std::string& values) const;
};

// Returns why no value of the axis changes anything at this point, and what to do; empty if values act.
std::string why_idle(const AxisRow& axis, const Point& point);
inline bool acts(const AxisRow& axis, const Point& point) { return why_idle(axis, point).empty(); }
std::string value_text(const AxisRow& axis, const Point& point);

// The idle values of a point whose number of ranks is known; empty if all its values act.
std::vector<IdleValue> idle_values(const Point& point);
// Returns the point with these values set to their defaults.
Point without(const std::vector<IdleValue>& values, Point point);

// Removes idle values from the points of a suite once their ranks are known. If the block lists several
// values, an idle one becomes the default, so that equal points become one. If an idle value is the only one
// in its block and acts at no other point there, it makes the point impossible. `blocks` holds the number of
// each point's block. `notes` gets a line for each axis or option whose values were joined.
void settle_idle_values(std::vector<Point>& points, const std::vector<size_t>& blocks,
                        std::vector<std::string>& notes);

// Points that can run and whose step or exchange equals that of an earlier point, though an axis or an option
// differs: a group as large as all ranks, or a bucket larger than the model. Returns indices, ordered by the
// later point.
struct SamePoints {
  size_t point, earlier;
};
std::vector<SamePoints> same_as_earlier(const std::vector<Point>& points);

// Throws UsageError if a value of this one point is idle. called(axis) returns what the user wrote:
// "--set".
void refuse_idle_values(const Point& point, const std::function<std::string(const AxisRow&)>& called);

}  // namespace shardmark
