// The version of the schema in which each column or series was added, and the name that it had before.
#pragma once

#include <array>
#include <string_view>

namespace shardmark {

// A column or series, and the first minor version in which every file has it under this name. What is not
// listed has been there since 1.0.
struct Since {
  std::string_view name;
  int minor;
  const char* former = nullptr;  // its name in earlier files, which are read, too
};
inline constexpr auto kSince = std::to_array<Since>({
    {"accuracy", 1},
    {"attempts", 1},
    {"between_nodes_bytes", 1},
    {"checkpointing", 1},
    {"chosen", 1},
    {"clip_norm", 1},
    {"communication_only_time", 1},
    {"compute_only_time", 1},
    {"ended_job", 1},
    {"energy", 1},
    {"first_step", 1},
    {"held_out_loss", 1},
    {"offloaded_bytes", 1},
    {"overlap", 1},
    {"reduce_dtype", 1},
    {"skipped_updates", 1},
    {"wanted_duration", 1},
    {"interval_faulty", 1},
    {"probed_communication_time", 3},
    {"reserved_bytes", 4},
    {"device_bytes", 4},
    {"predicted_parameter_bytes", 5, "law_parameter_bytes"},
    {"predicted_gradient_bytes", 5, "law_gradient_bytes"},
    {"predicted_optimizer_bytes", 5, "law_optimizer_bytes"},
    {"predicted_transient_bytes", 5, "law_transient_bytes"},
    {"predicted_offloaded_bytes", 5, "law_offloaded_bytes"},
    {"predicted_traffic_bytes", 5, "law_traffic_bytes"},
    {"predicted_activation_bytes", 6},
    {"memory_limit_bytes", 6},
    {"expert_load", 7},
    {"tensor", 8},
    {"sequence_parallel", 8},
    {"context", 8},
    {"pipeline", 8},
    {"pipeline_schedule", 8},
    {"stages", 8},
    {"rank_order", 8},
    {"exposed_tensor_time", 8},
    {"exposed_context_time", 8},
    {"exposed_pipeline_time", 8},
    {"exposed_tensor", 8},
    {"exposed_context", 8},
    {"exposed_pipeline", 8},
    {"environment", 9},
    {"parts", 9},
    {"beside", 9},
    {"load_alone", 9},
    {"collective_alone", 9},
    {"load_together", 9},
    {"collective_together", 9},
    {"together", 9},
    {"checkpoint_write", 9},
    {"checkpoint_read", 9},
    {"kernels", 9},
    {"gathers", 9},
    {"graph", 9},
    {"num_load_units", 10},
    {"parameter_backward_time", 10},
    {"preemptions", 10},
});

constexpr int minor_since(std::string_view name) {
  for (const Since& row : kSince)
    if (row.name == name) return row.minor;
  return 0;
}

// Returns nullptr if it has never had another name.
constexpr const char* former_name(std::string_view name) {
  for (const Since& since : kSince)
    if (since.name == name) return since.former;
  return nullptr;
}

}  // namespace shardmark
