// The id of a point and its text. The id is a hash over a canonical JSON form of everything that defines the
// measurement. Studies store ids, so what is written here for an existing point must never change: members
// that were added later are left out at their default.
#include "schema/point.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "schema/axes.h"
#include "schema/content_hash.h"
#include "schema/json.h"

namespace shardmark {
namespace {

// nlohmann::json keeps keys sorted, so the text, and with it the hash, does not depend on the order in which
// they are added.
using Canonical = nlohmann::json;

Canonical canonical(const Choice& choice) {
  return {{"name", choice.name}, {"options", Canonical(to_json(choice.options))}};
}

template <class T>
Canonical canonical(const T& value) {
  return value;
}

void add_axis(Canonical& object, const AxisRow& axis, const Point& point) {
  if (axis.is_stored() && !(axis.is_later && is_default(axis, point)))
    object[axis.key] = visit_member(axis, point, [](const auto& value) { return canonical(value); });
}

Canonical canonical(const Sampling& s) {
  Canonical canonical = {{"warmup_steps", s.warmup_steps},
                         {"min_steps", s.min_steps},
                         {"max_steps", s.max_steps},
                         {"time_limit", s.time_limit_s},
                         {"precision", s.precision}};
  if (s.duration_s > 0) canonical["duration"] = s.duration_s;  // only if set, so that older ids stay the same
  return canonical;
}

bool is_training(const Point& point) {
  ENSURE(is_known_workload(point), "no workload '" + point.workload + "'");
  return point.workload != "collective";
}

std::string ranks_text(int64_t ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

// The phrases of all axes whose value is not the default.
template <class Axes>
std::string extras_text(const Axes& axes, const Point& point) {
  std::string text;
  for (const AxisRow& axis : axes)
    if (axis.phrase != nullptr && !is_default(axis, point))
      visit_member(axis, point, [&]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, Choice>)
          text += fmt::format(fmt::runtime(axis.phrase), to_text(value));
        else if constexpr (std::is_same_v<T, int64_t>)
          text += axis.in_words != nullptr ? fmt::format(fmt::runtime(axis.phrase), axis.in_words(value))
                                           : fmt::format(fmt::runtime(axis.phrase), value);
        else
          text += fmt::format(fmt::runtime(axis.phrase), value);
      });
  return text;
}

}  // namespace

bool TrainingPoint::scales_blocks() const {
  const OptionValue* const scaling = products.options.find("scaling");
  return scaling != nullptr && scaling->is<std::string>() && scaling->get<std::string>() == "block";
}

std::string TrainingPoint::product_type() const {
  if (products.name != "fp8" || emulates_products()) return precision;
  return scales_blocks() ? "mxfp8" : "fp8";
}

bool is_known_workload(const Point& point) {
  return point.workload == "training" || point.workload == "train" || point.workload == "collective";
}

std::string point_id(const Point& point) {
  Canonical whole = {{"workload", point.workload},
                     {"seed", point.seed},
                     {"repeat", point.repeat},
                     {"sampling", canonical(point.sampling)}};
  for (const AxisRow& axis : kCommonAxes) add_axis(whole, axis, point);
  Canonical& work = whole["work"];
  if (is_training(point)) {
    // Whether the suite wrote a batch per rank or a global batch is not part of the identity. The key stays,
    // because the ids in existing studies ("weak") and in baselines ("") were made with it.
    work["scaling"] = point.training.scaling.empty() ? "" : "weak";
    for (const AxisRow& axis : kTrainingAxes) add_axis(work, axis, point);
  } else {
    for (const AxisRow& axis : kCollectiveAxes) add_axis(work, axis, point);
  }
  return hash_text(hash_bytes(whole.dump(-1, ' ', false, Canonical::error_handler_t::replace)));
}

std::string to_text(const Point& point) {
  const TrainingPoint& t = point.training;
  const CollectivePoint& c = point.collective;
  if (is_training(point))
    return fmt::format("training {} {} {} batch {}{}{}", to_text(t.model), to_text(t.strategy),
                       ranks_text(point.ranks),
                       t.batch_size == kLargest ? "largest" : std::to_string(t.batch_size),
                       t.accumulation > 1 ? fmt::format(" x {}", t.accumulation) : "",
                       extras_text(kTrainingAxes, point) + extras_text(kCommonAxes, point));
  return fmt::format("{} {}{} {} {}{}", c.operation, c.dtype, c.reduction == "none" ? "" : " " + c.reduction,
                     format_bytes(static_cast<double>(c.bytes)), ranks_text(point.ranks),
                     extras_text(kCollectiveAxes, point) + extras_text(kCommonAxes, point));
}

}  // namespace shardmark
