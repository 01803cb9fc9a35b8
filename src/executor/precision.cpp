// Maps the names of precisions to types.
#include "executor/precision.h"

#include "base/error.h"

namespace shardmark {

Precision precision_from(const std::string& name, const std::string& reduce_dtype) {
  Precision types = uniform(name == "fp64" ? at::kDouble : at::kFloat);
  if (name == "bf16" || name == "fp16") types.compute = name == "bf16" ? at::kBFloat16 : at::kHalf;
  ENSURE(reduce_dtype == "same" || reduce_dtype == "fp32", "no such type of reduction: " + reduce_dtype);
  types.reduce = reduce_dtype == "same" ? types.compute : types.master;
  return types;
}

}  // namespace shardmark
