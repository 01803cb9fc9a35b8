#include "analysis/frame/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/stats.h"
#include "schema/axes.h"
#include "strategies/brief_text.h"

namespace shardmark {

std::vector<Layouts> layouts_of(const std::vector<MergedPoint>& points) {
  std::vector<Layouts> all = groups_of(
      training_points(points, [](const auto& one) { return !is_replicas(one) && one.measures.step_s > 0; }),
      [](const MergedPoint& one) {
        return std::tuple(computing_family(one.point), location_of(one), one.point.global_batch());
      },
      [](const MergedPoint& one) { return one.measures.step_s; });
  std::erase_if(all, [](const Layouts& layouts) {
    return layouts.size() < 2 || std::none_of(layouts.begin(), layouts.end(), [](const MergedPoint* one) {
             return one->point.is_model_parallel();
           });
  });
  return all;
}

std::string layout_text(const Point& point) {
  const TrainingPoint& t = point.training;
  std::string text;
  for (const auto& [name, ranks] : {std::pair("tensor", t.tensor),
                                    {"context", t.context},
                                    {"expert", t.expert},
                                    {"pipeline", t.pipeline}})
    if (ranks > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, ranks);
  if (t.pipeline > 1) text += " (" + brief_text("pipeline_schedule", t.schedule) + ")";
  if (t.sequence_parallel) text += ", sequence parallel";
  if (t.dispatch != kDispatchCopies) text += ", dispatch " + dispatch_in_words(t.dispatch);
  return text.empty() ? "data" : text;
}

double exposed_data_s(const Measures& m) {
  double rest = m.exposed_s;
  for (const double part :
       {m.exposed_tensor_s, m.exposed_context_s, m.exposed_expert_s, m.exposed_pipeline_s})
    if (!std::isnan(part)) rest -= part;
  return without_rounding(rest, m.exposed_s);
}

}  // namespace shardmark
