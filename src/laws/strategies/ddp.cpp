// ddp: replicas that sum their gradients bucket by bucket: with one all-reduce each, 2(N-1)/N M bytes a rank,
// or by another of laws/reductions/.
#include "laws/reduction_law.h"
#include "laws/replica_cost.h"
#include "laws/schedule.h"
#include "laws/step_walk.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const ReductionCost reduction = reduction_cost(input);
  Cost cost = replica_cost(input, even_layout(input.model, 1));
  cost.gradient_bytes += reduction.residual_bytes;
  cost.ideal_bytes += reduction.residual_bytes;
  cost.transient_bytes = reduction.transient_bytes;
  cost.traffic_bytes = reduction.traffic_bytes;
  cost.num_operations = reduction.num_operations;
  return cost;
}

// The sums of strategies/ddp.cpp: a bucket is sent when its last group is ready; a second operation follows
// the first once all buckets are on their way.
class DdpWalk final : public StepWalk {
 public:
  explicit DdpWalk(const CostInput& input)
      : input_(input),
        schedule_(make_schedule(input.model)),
        buckets_(ddp_buckets(input.model, input.options, input.bytes.reduce)),
        sent_(bucket_operations(input)),
        works_(buckets_.size()) {}

 protected:
  void begin_micro_batch(bool last) override {
    reducing_ = last;
    num_groups_ = 0;
  }
  void before_forward(size_t) override {}
  void before_backward(size_t) override {}
  void after_backward(size_t block) override {
    num_groups_ += schedule_.complete_at[block].size();
    if (!reducing_) return;
    for (; next_ < buckets_.size() && groups_until_next() <= num_groups_; ++next_) start(next_, 0);
  }
  void reduce() override {
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      made_.add(Moment::What::wait, works_[bucket]);
      if (sent_[bucket].size() > 1) start(bucket, 1);
    }
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket)
      if (sent_[bucket].size() > 1) made_.add(Moment::What::wait, works_[bucket]);
  }
  void sum_squares() override {}
  void after_update() override {}

 private:
  void start(size_t bucket, size_t which) {
    const BucketOperation& operation = sent_[bucket][which];
    works_[bucket] = made_.start({operation.name, static_cast<double>(operation.bytes), input_.ranks, 1});
    if (which == 0) groups_before_ += buckets_[bucket].groups.size();
  }
  size_t groups_until_next() const { return groups_before_ + buckets_[next_].groups.size(); }

  const CostInput& input_;
  Schedule schedule_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<BucketOperation>> sent_;
  std::vector<int64_t> works_;  // [bucket]
  bool reducing_ = false;
  size_t num_groups_ = 0, groups_before_ = 0, next_ = 0;
};

Program program(const CostInput& input) { return DdpWalk(input).program(input); }

std::string impossible(const CostInput& input) {
  const Choice reduction = reduction_of(input.options);
  const auto& law = Registry<ReductionLaw>::instance().get(reduction.name, "reduction");
  if (input.bytes.scaled && reduction_cost(input).residual_bytes > 0)
    return "reduction " + reduction.name +
           " keeps a part of the gradient, which the changing loss scale of fp16 would make wrong; take bf16 "
           "or another reduction";
  if (input.bytes.reduce <= law.most_element_bytes) return {};
  return "reduction " + reduction.name + " takes gradients of at most " +
         std::to_string(law.most_element_bytes) + " bytes an element, the precision has " +
         std::to_string(input.bytes.reduce) + "; take fp32 or another reduction";
}

const OptionTable kOptions = {
    {"bucket_mb", OptionType::number, 25, "bucket size in MB (1e6 bytes)", {}, 1e-3, 1e6},
    {"first_bucket_mb",
     OptionType::number,
     1,
     "size of the first bucket in MB: communication starts early",
     {},
     1e-3,
     1e6},
    {.key = "reduction",
     .type = OptionType::choice,
     .default_value = "plain",
     .description = "how a bucket is reduced",
     .kind = reduction_kind},
};

const Registration<StrategyLaw> registered{
    "ddp", {"replicas; gradients reduced in buckets during backward", kOptions, cost, program, impossible}};

}  // namespace
}  // namespace shardmark::laws
