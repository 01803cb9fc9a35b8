// Draws a parameter in pieces, each from its own generator, which is seeded by (seed, name, piece). The
// threads of a rank share the work, and their number does not change the values. They are drawn in float32,
// which ATen does with vector instructions.
#include "models/initial.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "base/hash.h"
#include "models/parallel.h"
#include "schema/content_hash.h"

namespace shardmark {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements

}  // namespace

at::Tensor initial_value(const specs::ParameterSpec& spec, int64_t seed, at::ScalarType dtype) {
  using specs::Initial;
  if (spec.initial == Initial::zeros) return at::zeros(spec.shape, dtype);
  if (spec.initial == Initial::ones) return at::ones(spec.shape, dtype);
  const at::Tensor value = at::empty(spec.whole_shape(), at::kFloat);
  const at::Tensor flat = value.view(-1);
  const uint64_t key = hash_of(seed, hash_bytes(spec.name));
  at::parallel_for(0, (flat.numel() + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const at::Generator generator = at::detail::createCPUGenerator(hash_of(key, i));
      const at::Tensor piece = flat.narrow(0, i * kPiece, std::min(kPiece, flat.numel() - i * kPiece));
      if (spec.initial == Initial::normal)
        piece.normal_(0, spec.scale, generator);
      else
        piece.uniform_(-spec.scale, spec.scale, generator);
    }
  });
  return own_part(value, spec).to(dtype);
}

}  // namespace shardmark
