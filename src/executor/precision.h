// The types of a mixed-precision strategy.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

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

// From a suite's values of precision and reduce_dtype.
Precision precision_from(const std::string& name, const std::string& reduce_dtype);

inline Precision uniform(at::ScalarType dtype) { return {dtype, dtype, dtype}; }

}  // namespace shardmark
