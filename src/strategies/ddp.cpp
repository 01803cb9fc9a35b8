// ddp: data-parallel replicas, which reduce their gradients bucket by bucket while backward is still
// computing. A bucket is reduced by one all-reduce, or by another of the methods in reductions/. Gradients
// lie in memory in the order in which they become complete, so that a bucket can be sent as soon as its last
// group is complete. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2.
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
    buckets.push_back({{std::move(bucket), rest.first(numel), {}}, {}});
    rest.begin += numel;
  }
  return buckets;
}

// A replica that reduces each bucket as soon as it is complete.
class BucketedReplica : public Replica {
  using What = Instruction::What;

 public:
  explicit BucketedReplica(StepBuilder& step)
      : Replica(step, Element::reduce), buckets_(cut_buckets(step, reduced())) {
    step.replicated(parameters());
    const Choice choice = reduction_of(step.input().options);
    const Reduction& way = reduction(choice.name);
    way.plan(step, buckets_, choice.options);
    step.program().reduction = choice;
    step.program().lossy = way.lossy;
    for (const ReducedBucket& bucket : buckets_) step.program().buckets.push_back(bucket.memory);
  }

  // Starts the reduction of every bucket whose gradients are complete. They become complete in memory order,
  // so that it suffices to count elements.
  void after(const Position& at) override {
    Replica::after(at);
    if (!at.is_last) return;
    for (const size_t group : at.complete) num_complete_ += step_.numel_of(group);
    for (; works_.size() < buckets_.size(); works_.push_back(start(works_.size(), What::pack))) {
      const Slice& next = buckets_[works_.size()].memory.gradients;
      if (next.begin + next.numel > num_complete_) break;
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
  Operations start(size_t bucket, What before) {
    local(before, bucket);
    return step_.start({buckets_[bucket].calls[before == What::pack ? 0 : 1]});
  }
  bool calls_twice(size_t bucket) const { return buckets_[bucket].calls.size() > 1; }
  void local(What what, size_t bucket) {
    if (buckets_[bucket].is_packed()) step_.reduction(what, bucket);
  }

  std::vector<ReducedBucket> buckets_;
  std::vector<Operations> works_;  // [bucket]: the calls in flight
  int64_t num_complete_ = 0;       // elements
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
