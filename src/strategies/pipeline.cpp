// The registry of pipeline schedules, and the text of an action.
#include "strategies/pipeline.h"

#include <fmt/format.h>

namespace shardmark::strategies {

const ChoiceKind& pipeline_schedule_kind() {
  static const ChoiceKind kind = [] {
    ChoiceKind all{"pipeline schedule", {}, [](const std::string& name) -> const OptionTable& {
                     return pipeline_schedule(name).options;
                   }};
    for (const auto& [name, entry] : Registry<PipelineSchedule>::instance().entries())
      all.names.push_back(name);
    return all;
  }();
  return kind;
}

std::string describe(const PipelineAction& action, int64_t chunks) {
  const char* const pass = action.pass == Pass::forward          ? "forward"
                           : action.pass == Pass::backward       ? "backward"
                           : action.pass == Pass::backward_input ? "backward_input"
                                                                 : "backward_weight";
  std::string text = fmt::format("{} of micro-batch {}", pass, action.micro_batch);
  if (chunks > 1) text += fmt::format(" through chunk {}", action.chunk);
  return text;
}

}  // namespace shardmark::strategies
