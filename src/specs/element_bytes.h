// The bytes that training keeps for each parameter, by precision.
#pragma once

#include <cstdint>

namespace shardmark::specs {

// The bytes of one element. compute: weights and gradients as blocks use them. master: weights and gradients
// as the optimizer uses them. reduce: gradients while they are reduced, which is one of the other two.
struct ElementBytes {
  int64_t compute = 4;
  int64_t master = 4;
  int64_t reduce = 4;
  bool scaled = false;  // gradients carry the loss scale, which may change every step
  bool mixed() const { return compute != master; }
  bool converts() const { return reduce != compute; }
};

// Element types. master, compute and reduce depend on the precision (ElementBytes).
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

// The bytes that one rank with a whole model keeps for each parameter. `copy` and `gradient`, in the compute
// type, are 0 if that is the master type. Source of the split: Micikevicius et al., Mixed Precision Training,
// ICLR 2018; Rajbhandari et al., SC 2020, section 3.1.
struct BytesPerParameter {
  int64_t master, copy;  // weights as the optimizer uses them, and as blocks do
  int64_t main_gradient, gradient;
  int64_t state;  // optimizer state
  int64_t total() const { return master + copy + main_gradient + gradient + state; }
};
inline BytesPerParameter bytes_per_parameter(const ElementBytes& bytes, int64_t optimizer_elements) {
  const int64_t copy = bytes.mixed() ? bytes.compute : 0;
  return {bytes.master, copy, bytes.master, copy, bytes.master * optimizer_elements};
}

}  // namespace shardmark::specs
