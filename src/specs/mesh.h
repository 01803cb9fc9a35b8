// The ranks of a job as a device mesh of data x context x tensor x pipeline dimensions, and the process
// groups along them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace shardmark {
struct Point;
}

namespace shardmark::specs {

// The dimensions of the mesh. Along data, ranks have the same part of the model and different samples; along
// tensor, they share its blocks; along context, its sequences; along pipeline, each has a stage; along
// expert, ranks with different tokens share the experts of each layer.
enum class Dimension { data, tensor, context, pipeline, expert };
inline constexpr std::array kDimensionNames = {"data", "tensor", "context", "pipeline", "expert"};
inline constexpr size_t kNumDimensions = kDimensionNames.size();

// A process group: `ranks` ranks that are `stride` apart. The ranks of a job are divided into such groups, in
// blocks of ranks x stride consecutive ranks.
struct ProcessGroup {
  int64_t ranks = 1;
  int64_t stride = 1;
  // The index of a rank of the job in its process group.
  int64_t index_of(int64_t rank) const { return rank / stride % ranks; }
  // The number of the process group that a rank belongs to. Groups of the same block have consecutive
  // numbers.
  int64_t number_of(int64_t rank) const { return rank / (ranks * stride) * stride + rank % stride; }
  // Ranks of this group: `ranks` of them, which are `stride` places apart in it.
  ProcessGroup among(const ProcessGroup& places) const {
    return places.ranks == 0 ? *this : ProcessGroup{places.ranks, stride * places.stride};
  }
  bool operator==(const ProcessGroup&) const = default;
};

// The ranks of a tensor group are neighbours, because they exchange most. Then come those of a context group,
// the copies of the model, and the stages, as in Megatron-LM and torchtitan (dp-pp). Alternatively, stages
// come before context and copies (pp-dp), as in Llama 3 (Grattafiori et al. 2024, section 3.3.2) except for
// context. Copies are then the farthest apart, which matters least, because gradient reduction can overlap
// with backward.
struct Mesh {
  int64_t data = 1;              // copies of the model
  int64_t pipeline = 1;          // stages
  bool pipeline_inside = false;  // pp-dp
  int64_t tensor = 1;            // ranks that share every block
  int64_t context = 1;           // ranks that share every sequence
  int64_t expert = 1;            // ranks that share the experts of every layer

  // Ranks that have the same part of the model and different tokens. Ranks that share a sequence are
  // neighbours.
  ProcessGroup copies() const { return {context * data, pipeline_inside ? tensor * pipeline : tensor}; }
  ProcessGroup tensor_group() const { return {tensor, 1}; }
  ProcessGroup context_group() const { return {context, copies().stride}; }
  ProcessGroup pipeline_group() const {
    return {pipeline, pipeline_inside ? tensor : tensor * context * data};
  }
  // Experts are divided over neighbours among the copies, and the ranks that have the same experts are as far
  // apart as there are neighbours. Together they are the copies: Megatron-LM's expert and expert-data groups.
  // With tensor parallelism, all tensor ranks of these neighbours have experts of their own (Megatron-LM's
  // expert-tensor-parallel size of 1).
  ProcessGroup expert_group() const { return {expert, has_experts_on_tensor_ranks() ? 1 : copies().stride}; }
  bool has_experts_on_tensor_ranks() const { return expert > 1 && tensor > 1; }
  // How many ranks of the copies share experts.
  int64_t expert_neighbours() const { return has_experts_on_tensor_ranks() ? expert / tensor : expert; }
  ProcessGroup expert_copies() const { return expert_copies_among(copies().ranks); }
  // The ranks that have the same experts, among `neighbours` ranks of the copies. That number divides the
  // ranks that share experts, or is a multiple of it.
  ProcessGroup expert_copies_among(int64_t neighbours) const {
    return {std::max<int64_t>(1, neighbours / expert_neighbours()), copies().stride * expert_neighbours()};
  }
  ProcessGroup process_group_of(Dimension dimension) const {
    return dimension == Dimension::tensor     ? tensor_group()
           : dimension == Dimension::context  ? context_group()
           : dimension == Dimension::pipeline ? pipeline_group()
           : dimension == Dimension::expert   ? expert_group()
                                              : copies();
  }
  // The dimension that a process group of a strategy runs along. A strategy builds its groups among all
  // copies, where the ranks that share a sequence come first. If all ranks of a group share one sequence, the
  // group communicates for context parallelism, not for data parallelism.
  Dimension dimension_of(const ProcessGroup& process_group) const {
    if (process_group.ranks == 1) return Dimension::data;
    if (process_group == pipeline_group()) return Dimension::pipeline;
    if (process_group == tensor_group()) return Dimension::tensor;
    const bool shares_sequence =
        process_group.stride == context_group().stride && context % process_group.ranks == 0;
    return shares_sequence ? Dimension::context : Dimension::data;
  }
  int64_t stage_of(int64_t rank) const { return pipeline_group().index_of(rank); }
  int64_t data_index_of(int64_t rank) const { return copies().index_of(rank) / context; }
  int64_t ranks_per_copy() const { return context * tensor * pipeline; }
};

Mesh mesh_of(const Point& point);  // of a training point

}  // namespace shardmark::specs
