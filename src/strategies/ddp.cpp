// ddp: replicas whose gradients are reduced bucket by bucket (reductions/) while backward still computes.
// Source: Li et al., VLDB 2020.
#include "laws/reduction_law.h"
#include "strategies/flat.h"
#include "strategies/reductions/reduction.h"
#include "strategies/schedule.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

class Ddp final : public Strategy {
 public:
  explicit Ddp(const StrategyContext& context)
      : model_(context.model),
        comm_(context.comm),
        layout_(laws::even_layout(context.model.table(), 1)),
        schedule_(make_schedule(context.model.table())),
        parameters_(allocate_flat(model_, comm_, layout_, MemoryUse::parameters)),
        gradients_(allocate_flat(model_, comm_, layout_, MemoryUse::gradients)),
        optimizer_(make_optimizer(context.optimizer, {{parameters_.buffer, gradients_.buffer}})),
        scale_(1.0 / static_cast<double>(comm_.size() * context.accumulation)) {
    for (size_t g = 0; g < layout_.size(); ++g) {
      fill_initial(model_, g, layout_[g], {0, layout_[g].numel}, context.seed, parameters_.groups[g]);
      bind_parameters(model_, g, layout_[g], parameters_.groups[g]);
      bind_gradients(model_, g, layout_[g], gradients_.groups[g]);
    }
    cut_buckets(context);
  }

  void begin_micro_batch(int64_t, bool last) override {
    reducing_ = last;
    num_ready_ = 0;
    next_bucket_ = 0;
  }

  // Gradients complete in the order in which they lie in memory, so a count of elements says which buckets
  // are ready.
  void after_backward(int64_t block) override {
    if (!reducing_) return;
    for (size_t group : schedule_.complete_at[static_cast<size_t>(block)]) num_ready_ += layout_[group].numel;
    for (; next_bucket_ < ends_.size() && ends_[next_bucket_] <= num_ready_; ++next_bucket_)
      reduction_->start(next_bucket_);
    comm_.progress();
  }

  void reduce() override { reduction_->finish(); }
  void update() override {
    optimizer_->step();
    gradients_.buffer.zero_();
  }
  void set_learning_rate(double lr) override { optimizer_->set_learning_rate(lr); }
  double gradient_scale() const override { return scale_; }
  double gradient_squares() override { return squares({gradients_.buffer}); }
  std::vector<at::Tensor> replicated() override { return {parameters_.buffer}; }
  bool lossy() const override { return reduction_->lossy(); }
  void visit_parameters(const ParameterVisitor& visit) override {
    for (size_t g = 0; g < layout_.size(); ++g)
      visit_group(model_, g, layout_[g], parameters_.groups[g], visit);
  }

 private:
  void cut_buckets(const StrategyContext& context) {
    const auto elements = [&](const char* option) {
      return static_cast<int64_t>(context.options.at(option).get<double>() * 1e6) /
             static_cast<int64_t>(at::elementSize(model_.dtype()));
    };
    const Choice choice = laws::reduction_of(context.options);
    const auto& table = model_.table();
    ReductionContext cut{
        comm_,       table,
        layout_,     laws::buckets(table, layout_, elements("first_bucket_mb"), elements("bucket_mb")),
        {},          choice.options,
        context.seed};
    int64_t begin = 0;
    for (const auto& bucket : cut.buckets) {
      cut.gradients.push_back(gradients_.buffer.narrow(0, begin, bucket.numel));
      begin += bucket.numel;
      ends_.push_back(begin);
    }
    reduction_ = make_reduction(choice.name, cut);
  }

  Model& model_;
  Communicator& comm_;
  std::vector<laws::GroupLayout> layout_;
  Schedule schedule_;
  FlatModel parameters_;
  FlatModel gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  double scale_;
  std::vector<int64_t> ends_;  // [bucket]: in elements from the begin of the gradients
  std::unique_ptr<Reduction> reduction_;
  bool reducing_ = false;
  int64_t num_ready_ = 0;
  size_t next_bucket_ = 0;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) { return std::make_unique<Ddp>(context); }

const Registration<StrategyEntry> registered{"ddp", {"replicas; gradients all-reduced in buckets", make}};

}  // namespace
}  // namespace shardmark
