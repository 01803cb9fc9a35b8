// ddp: data-parallel replicas, which reduce their gradients bucket by bucket while backward is still
// computing. A bucket is reduced by one all-reduce, or by another of the methods in reductions/. Gradients
// lie in memory in the order in which they become complete, so that a bucket can be sent as soon as its last
// group is complete. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2.
#include <algorithm>

#include "strategies/paper.h"
#include "strategies/reductions/reduction.h"
#include "strategies/replica.h"

namespace shardmark::strategies::ddp {
namespace {

std::vector<ReducedBucket> cut_buckets(const StepBuilder& step, const Slice& gradients) {
  const StepInput& input = step.input();
  const auto elements = [&](const char* option) {
    return static_cast<int64_t>(input.options.at(option).get<double>() * 1e6) / input.bytes.reduce;
  };
  std::vector<ReducedBucket> buckets;
  Slice rest = gradients;
  for (specs::Bucket& bucket :
       specs::buckets(input.model, step.layout(), elements("first_bucket_mb"), elements("bucket_mb"))) {
    const int64_t numel = bucket.numel;
    const ProcessGroup ranks = bucket.of_experts ? input.mesh.expert_copies() : step.all();
    buckets.push_back({{std::move(bucket), rest.first(numel), {}}, {}, ranks});
    rest.begin += numel;
  }
  return buckets;
}

// A replica that reduces each bucket as soon as it is complete. Gradients of experts that ranks share become
// complete in turn with all others, and lie behind them in memory.
class BucketedReplica : public Replica {
  using What = Instruction::What;

 public:
  explicit BucketedReplica(StepBuilder& step)
      : Replica(step, Element::reduce), buckets_(cut_buckets(step, reduced())) {
    step.replicated(parameters().first(parameters().numel - step.numel_of_experts()));
    const Choice choice = reduction_of(step.input().options);
    const Reduction& way = reduction(choice.name);
    way.plan(step, buckets_, choice.options);
    step.program().reduction = choice;
    step.program().lossy = way.lossy;
    for (const ReducedBucket& bucket : buckets_) step.program().buckets.push_back(bucket.memory);
    works_.resize(buckets_.size());
    const auto num_others =
        static_cast<size_t>(std::count_if(buckets_.begin(), buckets_.end(), [](const ReducedBucket& bucket) {
          return !bucket.memory.bucket.of_experts;
        }));
    others_ = {0, num_others, 0};
    experts_ = {num_others, buckets_.size(), parameters().numel - step.numel_of_experts()};
  }

  // Starts the reduction of every bucket whose gradients are complete. Those of either kind become complete
  // in memory order, so that it suffices to count elements.
  void after(const Position& at) override {
    Replica::after(at);
    if (!at.is_last) return;
    for (const size_t group : at.complete)
      (is_of_experts(group) ? experts_ : others_).end += step_.numel_of(group);
    for (Complete* complete : {&others_, &experts_})
      for (; complete->next < complete->last; ++complete->next) {
        const Slice& gradients = buckets_[complete->next].memory.gradients;
        if (gradients.begin + gradients.numel > complete->end) break;
        works_[complete->next] = start(complete->next, What::pack);
      }
  }
  // The first calls of all buckets are in flight now. Second calls start as the first ones end, so that they
  // overlap with the waits for the buckets behind them.
  void finish() override {
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      step_.wait(works_[bucket]);
      if (calls_twice(bucket))
        works_[bucket] = start(bucket, What::combine);
      else
        local(What::unpack, bucket);
    }
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      if (!calls_twice(bucket)) continue;
      step_.wait(works_[bucket]);
      local(What::unpack, bucket);
    }
    Replica::finish();
  }

 private:
  // The buckets of one kind: the next to be reduced, the last, and the end of what is complete in memory.
  struct Complete {
    size_t next = 0, last = 0;
    int64_t end = 0;
  };

  bool is_of_experts(size_t group) const { return step_.input().model.groups[group].has_own_experts(); }
  Operations start(size_t bucket, What before) {
    local(before, bucket);
    if (buckets_[bucket].calls.empty()) return {};
    return step_.start({buckets_[bucket].calls[before == What::pack ? 0 : 1]});
  }
  bool calls_twice(size_t bucket) const { return buckets_[bucket].calls.size() > 1; }
  void local(What what, size_t bucket) {
    if (buckets_[bucket].is_packed()) step_.reduction(what, bucket);
  }

  std::vector<ReducedBucket> buckets_;
  std::vector<Operations> works_;  // [bucket]: the calls in flight
  Complete others_, experts_;
};

Program write(const StepInput& input, const Schedule& schedule) {
  StepBuilder step("ddp", input, schedule, specs::even_layout(input.model, ProcessGroup{}));
  BucketedReplica replica(step);
  return write_step(step, {&replica});
}

Cost paper(const StepInput& input) {
  const Sizes s(input);
  const Choice choice = reduction_of(input.options);
  Cost cost = replica_cost(s, updates_in_one_pass(input, Element::reduce));
  reduction(choice.name).paper(cost, s, choice.options);
  return cost;
}

std::string impossible(const StepInput& input) {
  const Choice choice = reduction_of(input.options);
  const Reduction& way = reduction(choice.name);
  if (input.mesh.expert > 1 && choice.name != "plain")
    return "reduction " + choice.name +
           " sums every bucket over all ranks, and fewer ranks have the same experts; take reduction plain";
  if (input.bytes.scaled && way.keeps_residual)
    return "reduction " + choice.name +
           " keeps a part of the gradient, which the changing loss scale of fp16 would make wrong; take bf16 "
           "or another reduction";
  // Tensor-parallel ranks have the gradients of norms in common, but not those of the rest of a bucket.
  const specs::Split& split = input.model.split;
  if (way.couples_elements && split.tensor > 1 && !split.sequence_parallel)
    return "reduction " + choice.name +
           " would let the parameters that all tensor-parallel ranks have drift apart; take "
           "sequence_parallel, which adds up their gradients, or another reduction";
  if (input.bytes.reduce <= way.most_element_bytes) return {};
  return "reduction " + choice.name + " takes gradients of at most " +
         std::to_string(way.most_element_bytes) + " bytes an element, the precision has " +
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

const Registration<Strategy> registered{
    "ddp", {"replicas; gradients reduced in buckets during backward", kOptions, write, paper, impossible}};

}  // namespace
}  // namespace shardmark::strategies::ddp
