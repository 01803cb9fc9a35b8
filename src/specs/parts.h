// all_to_all_v: how what each rank sends is shared out among the receivers. The receivers are the same for
// all senders, as popular experts of a mixture are, so that some ranks receive more than others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/choice.h"

namespace shardmark::specs {

struct PartsSpec {
  std::string description;
  OptionTable options = {};
};
const std::map<std::string, PartsSpec>& parts_specs();  // equal, hot, zipf, counts

// Elements that each rank sends to each.
class Parts {
 public:
  using Rows = std::vector<std::vector<int64_t>>;
  // [sender][receiver]; a single row is what every sender sends. Rows that all are the same are kept once, so
  // that a plan for a hundred thousand ranks needs memory for one row.
  explicit Parts(Rows rows);

  int64_t between(int64_t sender, int64_t receiver) const {
    return row_of(sender)[static_cast<size_t>(receiver)];
  }
  const Rows& rows() const { return rows_; }
  int64_t sent_by(int64_t rank) const { return sent_[static_cast<size_t>(rank)]; }
  int64_t received_by(int64_t rank) const { return received_[static_cast<size_t>(rank)]; }
  // The larger side of the rank that sends or receives most, its own part included: the payload.
  int64_t busiest() const { return busiest_; }
  // The same without what ranks keep: what the busiest rank exchanges with others.
  int64_t busiest_with_others() const { return busiest_with_others_; }
  // That each rank sends to others, the mean over ranks.
  double moved() const;

 private:
  const std::vector<int64_t>& row_of(int64_t sender) const {
    return rows_[rows_.size() == 1 ? 0 : static_cast<size_t>(sender)];
  }

  int64_t ranks_;
  Rows rows_;
  std::vector<int64_t> sent_, received_;
  int64_t busiest_ = 0, busiest_with_others_ = 0;
};

// Every rank sends `elements` in all; of `counts` the sender that sends most does. UsageError: a file of
// counts that is not there, or not for so many ranks, by its line. folder: of the suite, for its path.
Parts share_out(const Choice& parts, int64_t ranks, int64_t elements, const std::string& folder = "");

}  // namespace shardmark::specs
