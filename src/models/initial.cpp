// Draws a parameter from a generator of its own, seeded by (seed, name).
#include "models/initial.h"

#include <ATen/CPUGeneratorImpl.h>

#include "base/error.h"

namespace shardmark {
namespace {

// FNV-1a over the name, then the finaliser of splitmix64: torch's Mersenne twister takes the low 32 bits.
uint64_t mix(int64_t seed, const std::string& name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const unsigned char c : name) h = (h ^ c) * 0x100000001b3u;
  h += 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(seed) + 1);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

}  // namespace

at::Tensor initial_value(const laws::ParameterSpec& spec, int64_t seed, at::ScalarType dtype) {
  using laws::Initial;
  if (spec.initial == Initial::zeros) return at::zeros(spec.shape, dtype);
  if (spec.initial == Initial::ones) return at::ones(spec.shape, dtype);
  const at::Generator generator = at::detail::createCPUGenerator(mix(seed, spec.name));
  at::Tensor value = at::empty(spec.shape, at::kDouble);
  if (spec.initial == Initial::normal)
    value.normal_(0, spec.scale, generator);
  else
    value.uniform_(-spec.scale, spec.scale, generator);
  return value.to(dtype);
}

}  // namespace shardmark
