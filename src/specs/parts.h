// all_to_all_v, dispatch and combine: how each rank divides what it sends among the receivers. Popular
// receivers are the same for all senders, as popular experts of a mixture are, so that some ranks receive
// more than others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/choice.h"
#include "specs/collectives.h"

namespace shardmark::specs {

struct PartsSpec {
  std::string description;
  OptionTable options = {};
};
const std::map<std::string, PartsSpec>& parts_specs();  // equal, hot, zipf, counts, experts

// The number of elements that each rank sends to each rank.
class Parts {
 public:
  using Rows = std::vector<std::vector<int64_t>>;
  // [sender][receiver]; a single row holds for every sender. Equal rows are stored once, so that a plan for a
  // hundred thousand ranks needs the memory of one row.
  explicit Parts(Rows rows);

  int64_t between(int64_t sender, int64_t receiver) const {
    return row_of(sender)[static_cast<size_t>(receiver)];
  }
  const Rows& rows() const { return rows_; }
  int64_t sent_by(int64_t rank) const { return sent_[static_cast<size_t>(rank)]; }
  int64_t received_by(int64_t rank) const { return received_[static_cast<size_t>(rank)]; }
  // The payload: the larger of what the busiest rank sends and receives, its own part included.
  int64_t busiest() const { return busiest_; }
  // The same without the parts that ranks keep: what the busiest rank exchanges with others.
  int64_t busiest_with_others() const { return busiest_with_others_; }
  int64_t longest() const { return longest_; }  // part of all
  // The elements that a rank sends to others, as the mean over ranks.
  double moved() const;
  Parts reversed() const;  // each part goes the other way

 private:
  const std::vector<int64_t>& row_of(int64_t sender) const {
    return rows_[rows_.size() == 1 ? 0 : static_cast<size_t>(sender)];
  }

  int64_t ranks_;
  Rows rows_;
  std::vector<int64_t> sent_, received_;
  int64_t busiest_ = 0, busiest_with_others_ = 0, longest_ = 0;
};

// Every rank sends `elements` in all; with `counts`, the rank that sends most does; with `experts`, those are
// the elements of its tokens, which it sends as often as their experts ask for. `folder` is that of
// the suite, in which the file of counts is looked up. Throws UsageError, with the line, if there is no such
// file or it is not for this number of ranks, or if these ranks cannot exchange so many tokens.
Parts share_out(const Choice& parts, int64_t ranks, int64_t elements, const std::string& folder = "");

// A message of `elements` in all, as nccl-tests counts it: the elements of one rank's part where it is cut
// into parts, rounded down. Of dispatch and combine, the elements of all whole tokens of a rank.
int64_t counted_elements(const CollectiveRow& row, const Choice& parts, int64_t ranks, int64_t elements);

// Elements in proportion to shares: each share is rounded down, and the elements that are left go to the
// largest remainders. All 0 if the shares are.
std::vector<int64_t> shared_out(int64_t elements, const std::vector<double>& shares);

}  // namespace shardmark::specs
