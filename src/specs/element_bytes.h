// Bytes that training keeps for each parameter, by precision.
#pragma once

#include <cstdint>

namespace shardmark::specs {

// Bytes of an element. compute: of weights and gradients as blocks see them; master: as the optimizer sees
// them; reduce: of gradients on their way between ranks, one of the two.
struct ElementBytes {
  int64_t compute = 4;
  int64_t master = 4;
  int64_t reduce = 4;
  bool scaled = false;  // gradients carry a loss scale, which changes from step to step
  bool mixed() const { return compute != master; }
  bool converts() const { return reduce != compute; }
};

// master: as the optimizer updates; compute: as blocks see it; reduce: as gradients travel.
enum class Element { master, compute, reduce, bf16, fp16, fp32, fp64, int32, int64 };
inline int64_t bytes_of(Element element, const ElementBytes& bytes) {
  switch (element) {
    case Element::master:
      return bytes.master;
    case Element::compute:
      return bytes.compute;
    case Element::reduce:
      return bytes.reduce;
    case Element::bf16:
    case Element::fp16:
      return 2;
    case Element::fp32:
    case Element::int32:
      return 4;
    case Element::fp64:
    case Element::int64:
      return 8;
  }
  return 0;
}

// Of a parameter of a whole model on one rank. The copies in the compute type are 0 where that is the
// master's. Source of the split: Micikevicius et al., Mixed Precision Training, ICLR 2018; Rajbhandari et
// al., SC 2020, section 3.1.
struct BytesPerParameter {
  int64_t master, copy;  // weights as the optimizer and as blocks see them
  int64_t main_gradient, gradient;
  int64_t state;  // of the optimizer
  int64_t total() const { return master + copy + main_gradient + gradient + state; }
};
inline BytesPerParameter bytes_per_parameter(const ElementBytes& bytes, int64_t optimizer_elements) {
  const int64_t copy = bytes.mixed() ? bytes.compute : 0;
  return {bytes.master, copy, bytes.master, copy, bytes.master * optimizer_elements};
}

}  // namespace shardmark::specs
