// How steps grow with the number of nodes beyond their simulation: congestion of many groups at once, waiting
// for the slowest of many ranks, the host's time for what a library does for each operation.
//
// One parameter, fitted from rows on several numbers of nodes: each operation across nodes takes as many
// seconds longer for each doubling of the nodes, and no computing hides them:
//
//   measured - scale x simulated = seconds x operations across nodes x log2(nodes / least nodes)
//
// scale: median of measured / simulated on the least nodes, so that an error which is there already is not
// taken for growth. Least sum of |errors| / measured, which is a weighted median, so that a few steps that
// took many times as long do not decide. Interval: 2.5th and 97.5th percentile over rows drawn again.
//
// Source of the form: tests/data/playbook.csv (README.md, last table), by leaving out one number of nodes at
// a time. Several forms that grow with log2(nodes) were tried. Seconds for each operation across nodes, and
// a share of what these operations take, were off least and by about as much; the former ranks layouts
// better. A share of the step, of its computing, of all operations or of those between copies of the model,
// and seconds for a step, were off more. What grows with the nodes themselves or their square root is
// nearer on 64 nodes, and would be hours of a step on thousands (README.md has the figures).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/frame/estimate.h"

namespace shardmark {

struct GrowthRow {
  int64_t nodes = 1;
  double operations = 0;  // across nodes, that a rank starts in a step
  double simulated_s = 0, measured_s = 0;
};

struct Growth {
  Estimate operation_s;  // that an operation across nodes takes longer for each doubling of the nodes
  double share = 0;      // of a measured step, for each doubling: median over the rows on more than the least
  int64_t least_nodes = 1, most_nodes = 1;
  int64_t num_rows = 0;

  // Whether it is more than 0 for sure, and half a percent of a step: only then it is used.
  bool is_seen() const;
  // What a step with so many operations across nodes takes longer.
  Estimate added_s(int64_t nodes, double operations) const;
  // "Steps grow by 3.1 % (2.2 to 4.0) for each doubling of nodes: ..., fitted from 12 rows on 1 to 8 nodes."
  std::string text() const;
};

// Nothing where all rows are on one number of nodes, or fewer than 6 with operations across nodes are on more
// than the least.
std::optional<Growth> fit_growth(const std::vector<GrowthRow>& rows);
// The value alone, without one of the rows; 0 where nothing is left to fit.
double growth_without(std::vector<GrowthRow> rows, size_t left_out);

}  // namespace shardmark
