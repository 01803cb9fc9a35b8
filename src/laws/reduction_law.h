// What a way to reduce ddp's buckets costs by formula, beside the gradients themselves. Registered by
// src/laws/reductions/<name>.cpp; done by src/strategies/reductions/<name>.cpp.
#pragma once

#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

struct ReductionInput {
  const ModelTable& model;
  const std::vector<GroupLayout>& layout;
  const std::vector<Bucket>& buckets;
  int64_t ranks;
  int64_t element_bytes;  // of gradients
  Options options;        // of the reduction, resolved
};

// Per rank and step, of all buckets together.
struct ReductionCost {
  double residual_bytes = 0;   // persistent: what error feedback keeps for the next step
  double transient_bytes = 0;  // messages and working memory
  double traffic_bytes = 0;    // law bytes
  int64_t num_operations = 0;
  double value_bytes = 0;  // what the gradient itself shrinks to: its values, without indices, scales, ranks
};

// What is sent of a bucket, one operation after the other.
struct BucketOperation {
  std::string name;
  int64_t bytes = 0;  // payload
};

struct ReductionLaw {
  std::string description;
  OptionTable options;
  ReductionCost (*cost)(const ReductionInput& input);  // traffic_bytes and num_operations aside
  std::vector<BucketOperation> (*operations)(const ReductionInput& input,
                                             const Bucket& bucket);  // one or two
  int64_t most_element_bytes = 8;                                    // of gradients that it can reduce
};

const ChoiceKind& reduction_kind();

// The option `reduction` of ddp, which is a text after resolve().
Choice reduction_of(const Options& ddp_options);
// What ddp with these options reduces, in its order; element_bytes: of gradients on their way.
std::vector<Bucket> ddp_buckets(const ModelTable& model, const Options& ddp_options, int64_t element_bytes);
// [bucket][operation]: what ddp with these options sends.
std::vector<std::vector<BucketOperation>> bucket_operations(const CostInput& ddp);
// Of ddp with these options; UsageError where the reduction is not known.
ReductionCost reduction_cost(const CostInput& ddp);

}  // namespace shardmark::laws
