// Key performance indicators of the IETF's draft on benchmarking fabrics for AI training,
// draft-calabria-bmwg-ai-fabric-training-bench (work in progress; by its editors' copy of 1 October 2026, the
// newest text after revision 04), and of draft-calabria-bmwg-ai-fabric-terminology-04. What an operation
// moves is S x algo_factor there: all-reduce 2(n-1)/n, the others (n-1)/n, as in specs/collectives.h.
#pragma once

#include <vector>

namespace shardmark {

// An iteration that computes and communicates, in seconds and bytes of a rank. A NaN is not known, and makes
// what needs it a NaN.
struct JctIteration {
  double compute_s;         // C: computing alone
  double communication_s;   // measured alone
  double sequential_s;      // JCT, one after the other
  double overlapped_s;      // JCT, both at once
  double moved_bytes;       // S x algo_factor, over the operations of an iteration
  double line_bytes_per_s;  // B_acc / 8: of all NICs of an accelerator, in one direction
  double line_s() const { return moved_bytes / line_bytes_per_s; }
  double roofline_s() const { return compute_s + line_s(); }               // Roofline_seq, section 10.1
  double sequential_ratio() const { return sequential_s / roofline_s(); }  // JCT ratio
  double overlapped_ratio() const { return overlapped_s / roofline_s(); }
  // Section 10.1: 0 one after the other, 1 hidden; below 0 where communication takes longer than at line
  // rate.
  double overlap_fraction() const { return 1 - left_s() / line_s(); }
  // The same against the communication that was measured: what is hidden of it, whatever the links could do.
  double hidden() const { return 1 - left_s() / communication_s; }
  double left_s() const { return overlapped_s - compute_s; }  // Effective_Comm_Overhead
};

// Of n throughputs: 1 all equal, 1/n one alone. Jain, Chiu and Hawe, DEC TR-301, 1984; section 8.4.
double jain_index(const std::vector<double>& throughputs);

}  // namespace shardmark
