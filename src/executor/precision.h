// The types of a mixed-precision strategy.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace shardmark {

// compute: what blocks see. master: what the optimizer updates. reduce: gradients on their way between ranks,
// compute or master.
struct Precision {
  at::ScalarType compute = at::kFloat;
  at::ScalarType master = at::kFloat;
  at::ScalarType reduce = at::kFloat;

  bool mixed() const { return compute != master; }     // there is a compute copy beside the master weights
  bool converts() const { return reduce != compute; }  // gradients change their type before they are reduced
};

// From the words of a suite: precision and reduce_dtype.
Precision precision_from(const std::string& name, const std::string& reduce_dtype);

inline Precision uniform(at::ScalarType dtype) { return {dtype, dtype, dtype}; }

}  // namespace shardmark
