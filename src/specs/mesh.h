// Who talks to whom: the ranks of a job as a mesh of data x context x tensor x pipeline, and teams of
// them.
#pragma once

#include <array>
#include <cstdint>

namespace shardmark {
struct Point;
}

namespace shardmark::specs {

// Ranks that have the same part of the model; that share its blocks; that share its sequences; that have its
// stages.
enum class Dimension { data, tensor, context, pipeline };
inline constexpr std::array kDimensionNames = {"data", "tensor", "context", "pipeline"};
inline constexpr size_t kNumDimensions = kDimensionNames.size();

// Ranks that communicate: `ranks` of them, `stride` apart. All ranks of a job are dealt to such teams, in
// blocks of ranks x stride neighbours.
struct Team {
  int64_t ranks = 1;
  int64_t stride = 1;
  int64_t index_of(int64_t rank) const { return rank / stride % ranks; }  // of a rank of the job, in its team
  // The team's number: those of a block lie side by side.
  int64_t number_of(int64_t rank) const { return rank / (ranks * stride) * stride + rank % stride; }
  bool operator==(const Team&) const = default;
};

// Ranks of a tensor team are neighbours, as they exchange most; then come those of a context team, the copies
// of the model, and the stages, as Megatron-LM and torchtitan order them (dp-pp). Or stages come before
// context and copies (pp-dp), as in Llama 3 (Grattafiori et al. 2024, section 3.3.2) but for context: copies
// then bear the longer way, which a reduction can hide.
struct Mesh {
  int64_t data = 1;      // copies of the model
  int64_t pipeline = 1;  // stages
  bool pipeline_inside = false;
  int64_t tensor = 1;   // ranks that share every block
  int64_t context = 1;  // ranks that share every sequence

  // Have the same part of the model, and other tokens: those of a sequence are neighbours.
  Team copies() const { return {context * data, pipeline_inside ? tensor * pipeline : tensor}; }
  Team tensor_team() const { return {tensor, 1}; }
  Team context_team() const { return {context, copies().stride}; }
  Team pipeline_team() const { return {pipeline, pipeline_inside ? tensor : tensor * context * data}; }
  Team team_of(Dimension dimension) const {
    return dimension == Dimension::tensor     ? tensor_team()
           : dimension == Dimension::context  ? context_team()
           : dimension == Dimension::pipeline ? pipeline_team()
                                              : copies();
  }
  // What ranks a strategy's team consists of. A strategy takes its teams among all copies, and those that
  // share a sequence come first in there: where all ranks of a team share one, the team has nothing to do
  // with data parallelism.
  Dimension dimension_of(const Team& team) const {
    if (team.ranks == 1) return Dimension::data;
    if (team == pipeline_team()) return Dimension::pipeline;
    if (team == tensor_team()) return Dimension::tensor;
    const bool shares_sequence = team.stride == context_team().stride && context % team.ranks == 0;
    return shares_sequence ? Dimension::context : Dimension::data;
  }
  int64_t stage_of(int64_t rank) const { return pipeline_team().index_of(rank); }
  int64_t data_index_of(int64_t rank) const { return copies().index_of(rank) / context; }
  int64_t ranks_per_copy() const { return context * tensor * pipeline; }
};

Mesh mesh_of(const Point& point);  // of a training point

}  // namespace shardmark::specs
