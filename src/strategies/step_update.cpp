// The end of a step: gradients that several ranks share are summed, the gradient norm is computed, and the
// optimizer updates what the rank owns.
#include <algorithm>

#include "strategies/messages.h"

namespace shardmark::strategies {

std::vector<Slice> without(std::vector<Slice> slices, const std::vector<Slice>& removed) {
  for (const Slice& gone : removed) {
    std::vector<Slice> left;
    for (const Slice& slice : slices) {
      if (!slice.overlaps(gone)) {
        left.push_back(slice);
        continue;
      }
      const int64_t end = slice.begin + slice.numel, gone_end = gone.begin + gone.numel;
      if (slice.begin < gone.begin) left.push_back({slice.buffer, slice.begin, gone.begin - slice.begin});
      if (gone_end < end) left.push_back({slice.buffer, gone_end, end - gone_end});
    }
    slices = std::move(left);
  }
  return slices;
}

void StepBuilder::update() {
  part_ = Part::update;
  add({What::update});
  sum_over_tokens();
  share_tied_gradients();
  program_.norm = input_.norm;
  if (input_.norm) sum_squares();
  add({What::apply});
  part_ = Part::publish;
}

// Sums the gradients of parameters that all tensor-parallel ranks have, such as norms. With sequence_parallel
// each rank has their gradients for its part of the tokens only; Megatron-LM sums them once per step, too.
// Without it, all ranks have computed the same bits, and nothing is summed.
void StepBuilder::sum_over_tokens() {
  if (packed_.numel == 0) return;
  int64_t end = 0;
  const auto packed = [&](const Slice& slice) {
    const Slice place = packed_.part({end, slice.numel});
    end += slice.numel;
    return place;
  };
  for (const Slice& slice : in_all_tensor_ranks_) copy(packed(slice), slice);
  Operations sum = all_reduce({packed_.first(end)}, input_.mesh.tensor_team());
  wait(sum);
  end = 0;
  for (const Slice& slice : in_all_tensor_ranks_) copy(slice, packed(slice));
}

// Each of the two stages that have a tied group has computed a part of its gradient. They exchange the parts.
// An addition of two numbers is commutative, so that both stages get the same bits.
void StepBuilder::share_tied_gradients() {
  const Team pipeline = input_.mesh.pipeline_team();
  const int64_t own = pipeline.index_of(input_.rank), last = pipeline.ranks - 1;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    if (!input_.model.groups[group].is_tied) continue;
    for (const Slice& gradient : gradients_[group]) {
      if (gradient.numel == 0) continue;
      const Slice theirs = from_other_end_.first(gradient.numel);
      Operations exchange = start({{.what = Collective::send_recv,
                                    .bytes = bytes_of(gradient),
                                    .team = pipeline,
                                    .root = own == 0 ? last : 0,
                                    .out = theirs,
                                    .in = gradient,
                                    .group = static_cast<int64_t>(group),
                                    .lane = lane_of_ends()}});
      wait(exchange);
      add(gradient, theirs);
    }
  }
}

// Adds up the squares over all ranks of a copy of the model, so that each element counts once.
void StepBuilder::sum_squares() {
  add({What::squares, 0, 1, kSquares});
  std::vector<Team> teams;
  if (squares_of_) teams.push_back(*squares_of_);
  if (input_.mesh.tensor > 1) teams.push_back(input_.mesh.tensor_team());
  if (input_.mesh.pipeline > 1) teams.push_back(input_.mesh.pipeline_team());
  for (const Team& team : teams) {
    Operations sum = all_reduce({kSquares}, team);
    wait(sum);
  }
}

void StepBuilder::updates(const ModelShards& parameters, const ModelShards& gradients) {
  program_.owned = parameters.of;
  for (size_t group = 0; group < parameters.of.size(); ++group)
    for (size_t segment = 0; segment < parameters.of[group].size(); ++segment)
      if (parameters.of[group][segment].numel > 0)
        program_.updated.push_back({parameters.of[group][segment], gradients.of[group][segment]});
  program_.most_updated = specs::largest_share(program_.layout);
  squares_of_ = team();
  set_gradients(gradients.of);
}

void StepBuilder::updates(const std::vector<Slice>& parameters, const std::vector<Slice>& gradients,
                          const std::vector<Slice>& copy) {
  std::vector<Shard> of_groups;
  for (const Slice& group : parameters) program_.owned.push_back({group});
  for (const Slice& group : gradients) of_groups.push_back({group});
  if (!parameters.empty()) program_.updated = {{all_of(parameters), all_of(gradients)}};
  if (!copy.empty()) program_.updated.front().copy = all_of(copy);
  program_.most_updated = all_of(parameters).numel;
  set_gradients(std::move(of_groups));
}

// Returns this rank's slices of the gradients of parameters that are not tensor-parallel shards, in memory
// order.
std::vector<Slice> StepBuilder::gradients_in_all_tensor_ranks() const {
  std::vector<Slice> found;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    const std::vector<specs::ParameterSpec>& parameters = input_.model.groups[group].parameters;
    const GroupLayout& layout = program_.layout[group];
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].part) continue;
      const int64_t begin = layout.offsets[i], end = begin + parameters[i].numel();
      for (size_t segment = 0; segment < gradients_[group].size(); ++segment) {
        const Slice& own = gradients_[group][segment];
        const bool is_whole = own.numel == layout.numel;
        const int64_t from = is_whole ? 0 : layout.owned(segment, input_.rank).begin;
        const int64_t first = std::max(begin, from), last = std::min(end, from + own.numel);
        if (first < last) found.push_back(own.part({first - from, last - first}));
      }
    }
  }
  return found;
}

// Decides which gradients this rank counts in the norm: those of a tied group are counted by the first stage,
// and those of parameters that all tensor-parallel ranks have by the first of these ranks. Allocates the
// memory for the exchange of both.
void StepBuilder::set_gradients(std::vector<Shard> gradients) {
  gradients_ = std::move(gradients);
  const specs::Mesh& mesh = input_.mesh;
  const bool is_first = mesh.stage_of(input_.rank) == 0;
  int64_t most = 0;
  std::vector<Slice> not_counted;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    if (!input_.model.groups[group].is_tied) continue;
    for (const Slice& gradient : gradients_[group]) most = std::max(most, gradient.numel);
    if (!is_first) not_counted.insert(not_counted.end(), gradients_[group].begin(), gradients_[group].end());
  }
  if (mesh.tensor > 1) in_all_tensor_ranks_ = gradients_in_all_tensor_ranks();
  if (mesh.tensor_team().index_of(input_.rank) > 0)
    not_counted.insert(not_counted.end(), in_all_tensor_ranks_.begin(), in_all_tensor_ranks_.end());
  for (const OptimizerSlices& updated : program_.updated) program_.counted.push_back(updated.gradients);
  program_.counted = without(std::move(program_.counted), not_counted);
  if (most > 0)
    from_other_end_ = allocate("tied gradients of the other stage", Use::transient, Element::master, most);
  int64_t shared = 0;
  for (const Slice& slice : in_all_tensor_ranks_) shared += slice.numel;
  if (input_.model.split.sequence_parallel && shared > 0)
    packed_ = allocate("gradients over tokens", Use::transient, Element::master, shared);
}

}  // namespace shardmark::strategies
