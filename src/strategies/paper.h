// The costs of a step by the formulas of the papers, for a model of P parameters on N ranks, without padding,
// buckets or a program. Each strategy gives its formula (`paper`) in these terms. Programs and measurements
// are compared with it.
#pragma once

#include <limits>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Marks memory that no paper gives a formula for.
inline constexpr double kNoFormula = std::numeric_limits<double>::quiet_NaN();

struct Sizes {
  explicit Sizes(const StepInput& input) : Sizes(input, input.model) {}
  Sizes(const StepInput& input, const ModelTable& model);  // the model with its parameters in other groups

  const ModelTable& model;
  double ranks, micro_batches;
  double compute, master, reduce;  // bytes of an element (specs/element_bytes.h)
  double copy;                     // compute, if that is not the master type; otherwise 0
  double converted;                // reduce, if that is not the compute type; otherwise 0
  double state;                    // bytes of optimizer state per parameter
  // In elements:
  double parameters;          // P
  double roots = 0;           // in groups that several blocks use
  std::vector<double> units;  // the sizes of all other groups, in forward order
  double largest_tensor = 0;

  double largest_unit() const;
  double first_units(int64_t count) const;
  double last_units(int64_t count) const;
};

// The bytes that each rank sends per byte of an all-gather or reduce-scatter as a ring; an all-reduce sends
// twice as much. Source: Patarasuk and Yuan, JPDC 69(2), 2009.
inline double ring(double ranks) { return (ranks - 1) / ranks; }

// Everything is whole on every rank, and nothing is communicated. one_pass: the optimizer takes gradients in
// the compute type (replica.h). Source: Rajbhandari et al., ZeRO, SC 2020, section 3.1.
Cost replica_cost(const Sizes& s, bool one_pass);

// A rank holds 1/parts of parameters, gradients and optimizer state, and in addition `prefetch` + 1 slots for
// the parameters of a unit, two slots for gradients, and the root groups whole. Source: the same, section
// 5.3.
Cost sharded_cost(const Sizes& s, double parts, const Options& options);
double gradient_slot_bytes(const Sizes& s);
// Adds the optimizer state of 1/parts of the parameters. If the options offload it, it is in host memory,
// with copies of these parameters and their gradients. Source: Ren et al., ZeRO-Offload, USENIX ATC 2021.
void add_optimizer_state(Cost& cost, const Sizes& s, double parts, const Options& options);
// The elements of units that all forwards, or all backwards, of a step gather. Every pass gathers every unit,
// except those that still lie in the `prefetch` + 1 slots: the last units of the model when a backward
// begins, and the first units when the forward of the next micro-batch begins.
double gathered_forward(const Sizes& s, const Options& options);
double gathered_backward(const Sizes& s, const Options& options);

}  // namespace shardmark::strategies
