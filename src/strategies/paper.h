// What the papers say that a step costs, of a model of P parameters on N ranks: no padding, no buckets, no
// program. Each strategy gives its formula (`paper`) in these words; programs and measurements are compared
// with it.
#pragma once

#include <limits>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Of memory that no paper counts.
inline constexpr double kNoFormula = std::numeric_limits<double>::quiet_NaN();

struct Sizes {
  explicit Sizes(const StepInput& input) : Sizes(input, input.model) {}
  Sizes(const StepInput& input, const ModelTable& model);  // the same model by other groups

  const ModelTable& model;
  double ranks, micro_batches;
  double compute, master, reduce;  // bytes of an element (specs/element_bytes.h)
  double copy;                     // the compute type's where it is not the master's, else 0
  double converted;                // the reduced type's where it is not the compute type's, else 0
  double state;                    // bytes of the optimizer's state for a parameter
  // Elements.
  double parameters;          // P
  double roots = 0;           // in groups that several blocks use
  std::vector<double> units;  // the other groups, in forward order
  double largest_tensor = 0;

  double largest_unit() const;
  double first_units(int64_t count) const;
  double last_units(int64_t count) const;
};

// Of an all-gather or a reduce-scatter of one byte, each rank sends this; of an all-reduce twice as much.
// Source: Patarasuk and Yuan, JPDC 69(2), 2009.
inline double ring(double ranks) { return (ranks - 1) / ranks; }

// Everything on every rank; nothing moves. one_pass: an update of gradients in the compute type (replica.h).
// Source: Rajbhandari et al., ZeRO, SC 2020, section 3.1.
Cost replica_cost(const Sizes& s, bool one_pass);

// Parameters, gradients and optimizer state: 1/parts of each on a rank, beside `prefetch` + 1 slots for
// parameters of a unit, two for gradients, and the roots whole. Source: the same, section 5.3.
Cost sharded_cost(const Sizes& s, double parts, const Options& options);
double gradient_slot_bytes(const Sizes& s);
// State of the optimizer for 1/parts of the parameters; offloaded, with copies of them and of their
// gradients, where the options say so. Source: Ren et al., ZeRO-Offload, USENIX ATC 2021.
void add_optimizer_state(Cost& cost, const Sizes& s, double parts, const Options& options);
// Elements of units that all forwards, or all backwards, of a step gather: a unit is gathered for each, but
// where the last `prefetch` + 1 blocks of a forward, or the first ones of a backward, still lie in the slots.
double gathered_forward(const Sizes& s, const Options& options);
double gathered_backward(const Sizes& s, const Options& options);

}  // namespace shardmark::strategies
