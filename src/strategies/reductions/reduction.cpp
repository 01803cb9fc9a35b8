// The registry of reductions, and the sizes of compressed buckets.
#include "strategies/reductions/reduction.h"

#include <algorithm>
#include <cmath>

namespace shardmark::strategies {

const ChoiceKind& reduction_kind() {
  static const ChoiceKind kind = [] {
    ChoiceKind all{"reduction", {}, [](const std::string& name) -> const OptionTable& {
                     return reduction(name).options;
                   }};
    for (const auto& [name, entry] : Registry<Reduction>::instance().entries()) all.names.push_back(name);
    return all;
  }();
  return kind;
}

Choice reduction_of(const Options& ddp_options) {
  return choice_from_text(ddp_options.at("reduction").get<std::string>());
}

int64_t num_selected(int64_t numel, double ratio) {
  const auto wanted = static_cast<int64_t>(std::ceil(ratio * static_cast<double>(numel)));
  return std::min(numel, wanted + wanted % 2);
}

QuantisedParts quantised_parts(int64_t numel, int64_t ranks) {
  const int64_t unit = ranks * kQuantisedBlock;
  const int64_t num_blocks = (numel + unit - 1) / unit;  // in each part
  return {num_blocks * kQuantisedBlock, num_blocks * (kScaleBytes + kQuantisedBlock)};
}

LowRankBucket low_rank(const ModelTable& model, const std::vector<GroupLayout>& layout,
                       const specs::Bucket& bucket, int64_t rank) {
  LowRankBucket result;
  int64_t group_begin = 0;
  for (const size_t g : bucket.groups) {
    const auto& parameters = model.groups[g].parameters;
    for (size_t p = 0; p < parameters.size(); ++p) {
      const int64_t begin = group_begin + layout[g].offsets[p], numel = parameters[p].numel();
      const int64_t rows = parameters[p].shape.empty() ? 1 : parameters[p].shape.front();
      const int64_t columns = numel / rows, least = std::min({rank, rows, columns});
      if ((rows + columns) * least < numel) {
        result.matrices.push_back({parameters[p].name, begin, rows, columns, least});
        result.left_numel += rows * least;
        result.right_numel += columns * least;
      } else {
        result.others.push_back({begin, numel});
        result.left_numel += numel;
      }
    }
    group_begin += layout[g].numel;
  }
  return result;
}

}  // namespace shardmark::strategies
