// Times dispatch and combine: the two exchanges around the experts of a mixture, with the work that belongs
// to them on either side. A dispatch gathers the rows that it sends and ends when they have arrived, in the
// order of their senders. A combine sends rows back and ends when each token has the weighted sum of its own.
// How many rows travel is known beforehand, as it is to those who measure dispatchers alone; a layer that is
// trained tells its ranks first (models/dispatch.h).
#include <numeric>

#include "base/error.h"
#include "comm/verification.h"
#include "device/device.h"
#include "models/experts.h"
#include "specs/tokens.h"
#include "sweep/workloads/collective.h"

namespace shardmark {
namespace {

// One all_to_all_v of a dispatch: rows of the tokens that this rank has travel over `comm`.
struct ExchangeStage {
  Communicator* comm = nullptr;
  specs::TokenRows rows;
  std::shared_ptr<const specs::Parts> parts;  // of the dispatch, in elements
  int64_t num_tokens = 0;                     // that this rank has
};

// For each stage, the call of one set of buffers.
using StageCalls = std::vector<Call>;

class TokenExchangeWorkload : public CollectiveWorkload {
 public:
  explicit TokenExchangeWorkload(const WorkloadContext& context)
      : CollectiveWorkload(context),
        exchange_(choice_from_text(point_.collective.parts)),
        num_tokens_(point_.collective.bytes / static_cast<int64_t>(at::elementSize(dtype_)) /
                    exchange_.width),
        ranks_per_node_(by_node() ? ranks_on_node() : comm_.size()) {
    if (by_node() && ranks_per_node_ > 0) {
      splits_.push_back(comm_.split(comm_.rank() % ranks_per_node_, comm_.rank()));
      splits_.push_back(comm_.split(comm_.rank() / ranks_per_node_, comm_.rank()));
      for (const auto& split : splits_) split->count_in(comm_);
    }
  }

  void allocate() override {
    if (ranks_per_node_ == 0)
      throw UsageError(
          "parts experts(once_per=node) needs equally many ranks on every node, one node after the "
          "other; take once_per rank");
    to_ranks_ = rows_to_ranks(exchange_, comm_.size(), num_tokens_);
    traffic_ = token_traffic(exchange_, comm_.size(), ranks_per_node_, num_tokens_);
    make_stages();
    CollectiveWorkload::allocate();
  }

 protected:
  at::Tensor as_rows(const at::Tensor& flat) const { return flat.view({-1, exchange_.width}); }
  const std::vector<ExchangeStage>& stages() const { return stages_; }

  Moved moved() const override {
    const auto row_bytes =
        static_cast<double>(exchange_.width) * static_cast<double>(at::elementSize(dtype_));
    return {static_cast<double>(traffic_.logical) * row_bytes,
            static_cast<double>(traffic_.exchanged) * row_bytes, traffic_.moved * row_bytes};
  }
  double estimate_s() override { return Measures::kNone; }
  // With two stages there are two streams, which need their events.
  std::shared_ptr<void> in_order() override { return by_node() ? nullptr : CollectiveWorkload::in_order(); }
  void clear(size_t) override {}

  at::Tensor index_tensor(const std::vector<int64_t>& values) const {
    return at::tensor(values, at::kLong).to(comm_.device());
  }
  at::Tensor no_tokens(int64_t count) const {
    return at::zeros({count, exchange_.width}, at::TensorOptions(dtype_).device(comm_.device()));
  }
  // The tokens of a rank in a round of verification, on the CPU: [tokens, width].
  at::Tensor tokens_of(int rank, int64_t round) const {
    return as_rows(pattern(rank, num_tokens_ * exchange_.width, dtype_, round));
  }
  // Calls visit(rows, tokens) for each sender of a dispatch, in the order in which this rank has its rows:
  // with the rows of all senders [rows, width] cut to those of the sender, and the tokens that they are, on
  // the CPU. With two stages the senders come by their number on the node.
  template <class Visit>
  void visit_delivered(const at::Tensor& all_rows, int64_t round, const Visit& visit) const {
    const auto own = to_ranks_.count.begin() + comm_.rank();
    const int64_t begin = std::accumulate(to_ranks_.count.begin(), own, int64_t{0});
    const at::Tensor tokens = at::tensor(to_ranks_.token, at::kLong).narrow(0, begin, *own);
    const int step = by_node() ? ranks_per_node_ : 1;
    int64_t row = 0;
    for (int first = 0; first < step; ++first)
      for (int sender = first; sender < comm_.size(); sender += step, row += *own)
        visit(all_rows.narrow(0, row, *own), tokens_of(sender, round).index_select(0, tokens));
  }
  // What a combine makes of this rank's tokens if experts change nothing: each times the sum of its weights.
  at::Tensor combined(int64_t round) const {
    const at::Tensor weights = at::zeros({num_tokens_, 1}, at::kDouble);
    weights.squeeze(1).index_add_(0, at::tensor(to_ranks_.token, at::kLong),
                                  at::tensor(to_ranks_.weight, at::kDouble));
    return tokens_of(comm_.rank(), round).mul(weights.to(dtype_));
  }
  // Both are exact, so that they are compared in their own type.
  static int64_t num_different(const at::Tensor& result, const at::Tensor& expected) {
    return item<int64_t>(result.ne(expected.to(result.device())).sum());
  }

 private:
  bool by_node() const { return exchange_.once_per == specs::OncePer::node; }

  // 0: nodes have different numbers of ranks.
  int ranks_on_node() const {
    if (group_.max(static_cast<int64_t>(group_.first_rank_on_node())) == 0) return group_.size();  // one node
    return static_cast<int>(group_.even_ranks_per_node());
  }

  void make_stages() {
    std::vector<Communicator*> comms = {&comm_};
    if (by_node()) comms = {splits_[0].get(), splits_[1].get()};
    std::vector<specs::TokenRows> stages =
        token_stages(exchange_, comm_.size(), ranks_per_node_, comm_.rank() / ranks_per_node_, num_tokens_);
    int64_t num_tokens = num_tokens_;
    for (size_t i = 0; i < stages.size(); ++i) {
      std::vector<int64_t> sent = stages[i].count;
      for (int64_t& of_rank : sent) of_rank *= exchange_.width;
      auto parts = std::make_shared<const specs::Parts>(specs::Parts::Rows{std::move(sent)});
      const int64_t num_received = parts->received_by(comms[i]->rank()) / exchange_.width;
      stages_.push_back({comms[i], std::move(stages[i]), std::move(parts), num_tokens});
      num_tokens = num_received;
    }
  }

  specs::TokenExchange exchange_;
  int64_t num_tokens_;
  int ranks_per_node_;
  std::vector<std::unique_ptr<Communicator>> splits_;  // of the stages, with OncePer::node
  specs::TokenRows to_ranks_;
  specs::TokenTraffic traffic_;
  std::vector<ExchangeStage> stages_;
};

constexpr int kNoToken = 99;  // no pattern and no weighted sum of patterns has it

class DispatchWorkload final : public TokenExchangeWorkload {
 public:
  using TokenExchangeWorkload::TokenExchangeWorkload;

 private:
  void add_set(int64_t) override {
    if (tokens_.empty())
      for (const ExchangeStage& stage : stages()) index_.push_back(index_tensor(stage.rows.token));
    tokens_.push_back(no_tokens(stages().front().num_tokens));
    StageCalls& calls = calls_.emplace_back();
    for (const ExchangeStage& stage : stages())
      calls.push_back(prepare(*stage.comm, Collective::all_to_all_v, 0, dtype_, ReduceOp::sum,
                              /*in_place=*/false, stage.parts));
  }
  void perform(size_t set) override {
    at::Tensor tokens = tokens_[set];
    for (size_t i = 0; i < stages().size(); ++i) {
      const Call& call = calls_[set][i];
      at::Tensor sent = as_rows(call.in);
      at::index_select_out(sent, tokens, 0, index_[i]);
      stages()[i].comm->run(call);
      tokens = as_rows(call.out);
    }
  }
  void fill(size_t set, int64_t round) override {
    tokens_[set].copy_(tokens_of(comm_.rank(), round));
    calls_[set].back().out.fill_(kNoToken);
  }
  int64_t num_wrong(size_t set, int64_t round) override {
    int64_t wrong = 0;
    visit_delivered(
        as_rows(calls_[set].back().out), round,
        [&](const at::Tensor& rows, const at::Tensor& tokens) { wrong += num_different(rows, tokens); });
    return wrong;
  }

  std::vector<at::Tensor> index_;   // of each stage: the tokens of its rows
  std::vector<at::Tensor> tokens_;  // of each set: [tokens, width]
  std::vector<StageCalls> calls_;   // of each set
};

// Sums rows with weights, for each of `num_tokens` tokens over its own rows.
class SumOfRows {
 public:
  SumOfRows(const specs::TokenRows& rows, int64_t num_tokens, at::ScalarType dtype, at::Device device) {
    const auto [token, row] =
        at::tensor(rows.token, at::kLong).sort(/*stable=*/true, 0, /*descending=*/false);
    of_tokens_ = {row.to(device), at::searchsorted(token, at::arange(num_tokens, at::kLong)).to(device)};
    weight_ = at::tensor(rows.weight, at::kDouble).index_select(0, row).to(device, dtype);
  }
  at::Tensor operator()(const at::Tensor& rows) const { return sum_of_rows(rows, of_tokens_, weight_); }

 private:
  RowsOfTokens of_tokens_;
  at::Tensor weight_;  // what each row counts, in the order of the rows' tokens
};

class CombineWorkload final : public TokenExchangeWorkload {
 public:
  using TokenExchangeWorkload::TokenExchangeWorkload;

 private:
  void add_set(int64_t) override {
    if (calls_.empty())
      for (const ExchangeStage& stage : stages()) {
        sums_.emplace_back(stage.rows, stage.num_tokens, dtype_, comm_.device());
        back_.push_back(std::make_shared<const specs::Parts>(stage.parts->reversed()));
      }
    StageCalls& calls = calls_.emplace_back();
    for (size_t i = 0; i < stages().size(); ++i)
      calls.push_back(prepare(*stages()[i].comm, Collective::all_to_all_v, 0, dtype_, ReduceOp::sum,
                              /*in_place=*/false, back_[i]));
    results_.emplace_back();
  }
  void perform(size_t set) override {
    at::Tensor sums;
    for (size_t i = stages().size(); i-- > 0;) {
      const Call& call = calls_[set][i];
      if (sums.defined()) call.in.copy_(sums.flatten());
      stages()[i].comm->run(call);
      sums = sums_[i](as_rows(call.out));
    }
    results_[set] = sums;
  }
  void fill(size_t set, int64_t round) override {
    visit_delivered(as_rows(calls_[set].back().in), round,
                    [](const at::Tensor& rows, const at::Tensor& tokens) { rows.copy_(tokens); });
    calls_[set].front().out.fill_(kNoToken);
  }
  int64_t num_wrong(size_t set, int64_t round) override {
    return num_different(results_[set], combined(round));
  }

  std::vector<SumOfRows> sums_;                            // of each stage
  std::vector<std::shared_ptr<const specs::Parts>> back_;  // of each stage
  std::vector<StageCalls> calls_;                          // of each set
  std::vector<at::Tensor> results_;                        // of each set: [tokens, width]
};

}  // namespace

std::unique_ptr<Workload> make_token_exchange(const WorkloadContext& context) {
  if (context.point.collective.operation == "dispatch") return std::make_unique<DispatchWorkload>(context);
  return std::make_unique<CombineWorkload>(context);
}

}  // namespace shardmark
