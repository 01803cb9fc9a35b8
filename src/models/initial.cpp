// Draws a parameter from a generator of its own, seeded by (seed, name).
#include "models/initial.h"

#include <ATen/CPUGeneratorImpl.h>

#include "base/hash.h"
#include "schema/content_hash.h"

namespace shardmark {

at::Tensor initial_value(const laws::ParameterSpec& spec, int64_t seed, at::ScalarType dtype) {
  using laws::Initial;
  if (spec.initial == Initial::zeros) return at::zeros(spec.shape, dtype);
  if (spec.initial == Initial::ones) return at::ones(spec.shape, dtype);
  const at::Generator generator = at::detail::createCPUGenerator(hash_of(seed, hash_bytes(spec.name)));
  at::Tensor value = at::empty(spec.shape, at::kDouble);
  if (spec.initial == Initial::normal)
    value.normal_(0, spec.scale, generator);
  else
    value.uniform_(-spec.scale, spec.scale, generator);
  return value.to(dtype);
}

}  // namespace shardmark
