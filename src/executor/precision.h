// The types of a mixed-precision strategy.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

#include "base/error.h"

namespace shardmark {

// compute: blocks compute in it. master: the optimizer updates in it. reduce: gradients are reduced in it,
// which is compute or master.
struct Precision {
  at::ScalarType compute = at::kFloat;
  at::ScalarType master = at::kFloat;
  at::ScalarType reduce = at::kFloat;

  bool mixed() const { return compute != master; }     // there is a compute copy of the master weights
  bool converts() const { return reduce != compute; }  // gradients are converted before they are reduced
};

inline Precision uniform(at::ScalarType dtype) { return {dtype, dtype, dtype}; }

// From a suite's values of precision and reduce_dtype.
inline Precision precision_from(const std::string& name, const std::string& reduce_dtype) {
  Precision types = uniform(name == "fp64" ? at::kDouble : at::kFloat);
  if (name == "bf16" || name == "fp16") types.compute = name == "bf16" ? at::kBFloat16 : at::kHalf;
  ENSURE(reduce_dtype == "same" || reduce_dtype == "fp32", "no such type of reduction: " + reduce_dtype);
  types.reduce = reduce_dtype == "same" ? types.compute : types.master;
  return types;
}

}  // namespace shardmark
