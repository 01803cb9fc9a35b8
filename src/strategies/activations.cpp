// Walks over the schedule of a step and adds up what each block keeps and needs by its row of the model's
// table.
#include "strategies/activations.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace shardmark::strategies {
namespace {

class Activations {
 public:
  Activations(const StepInput& input, double batch)
      : model_(input.model),
        chunks_(input.all_chunks()),
        batch_(batch),
        masks_documents_(input.masks_documents),
        drops_in_context_(input.drops_in_context),
        element_(double(input.bytes.compute)),
        code_(input.code_bytes),
        rounds_(input.bytes.compute < 4 && !input.bytes.scaled),
        largest_(input.model.blocks.size()),
        experts_(input.model.blocks.size()),
        embedding_(input.model.blocks.size()) {
    for (const specs::GroupSpec& group : model_.groups)
      for (int64_t block = group.first_block; block <= group.last_block; ++block)
        for (const specs::ParameterSpec& parameter : group.parameters) add(block, group, parameter);
  }

  // The bytes that a forward keeps for backward.
  double kept(int64_t b) const {
    const specs::BlockSpec& block = at(b);
    const specs::ProductInputs& inputs = block.product_inputs;
    const double codes = code_ > 0 ? inputs.elements * code_ - inputs.alone * element_ : 0;
    return batch_ * ((block.activation_elements - block.logits) * element_ + block.logits * logit() +
                     block.indices * 8 + codes) +
           (rounds_ && block.logits > 0 && !has_own_words(b) ? aligned_copy(b) : 0);
  }
  // What forward leaves behind: all that backward needs, or the output alone. An output that was sent to
  // another stage is freed after it was sent, unless backward needs it (executor/executor.cpp).
  double left(int64_t b, bool keeps) const {
    const bool is_freed = sends(b) && !(keeps && at(b).needs_output);
    return keeps ? kept(b) - (is_freed ? output(b) : 0) : is_freed ? 0 : output(b);
  }
  // What a rank holds between the two parts of a backward.
  double between(int64_t b) const {
    const double codes = code_ > 0 ? at(b).product_inputs.deferred : 0;
    return batch_ * ((at(b).deferred_elements - codes) * element_ + codes * code_) +
           at(b).made_at_once * element_;
  }
  // What backward needs in addition to what forward has kept. The loss computes its gradients before those of
  // its block's parameters. A block of experts has the gradients of all its matrices at once, when it has
  // already freed a quarter of its working memory, or when it adds up the gradients of its inputs.
  double working(int64_t b) const {
    const double work = batch_ * at(b).working_elements * element_, matrices = experts_[size_t(b)] * element_;
    const double freed = batch_ * at(b).freed_elements * element_;
    return std::max({work, work - freed + parameter_bytes(b), 0.75 * work + matrices,
                     inputs_of_experts(b) + matrices, at_end(b),
                     batch_ * at(b).logits * bytes_beside_logit(b)});
  }
  // The same for a backward whose gradients of matrix products are computed later. If all of a block's are,
  // the gradient of its output stays as one of the products' inputs, beside the one that is passed on. That
  // of an output which was sent has a slot in the program's memory.
  double working_of_first_part(int64_t b) const {
    const double at_once = std::min(parameter_bytes(b), at(b).made_at_once * element_);
    const double left = sends(b) || at(b).made_at_once > 0 ? 0 : 2 * output(b);
    return left +
           std::max({batch_ * at(b).working_elements * element_ + (embedding_[size_t(b)] > 0 ? 0 : at_once),
                     at_end(b), batch_ * at(b).logits * bytes_beside_logit(b)});
  }
  // The gradients of matrix products are added to the parameters' as they are computed. Those of experts are
  // computed first, and added afterwards.
  double working_of_second_part(int64_t b) const { return experts_[size_t(b)] / 3 * element_; }
  double sample() const {
    const specs::SampleShape& sample = model_.sample;
    const double values =
        double(std::accumulate(sample.input.begin(), sample.input.end(), int64_t{1}, std::multiplies<>()));
    if (sample.kind != specs::SampleShape::Kind::tokens) return batch_ * element_ * values;
    // All layers share the mask. Tokens take far fewer bytes.
    const double mask = element_ * values * values / double(model_.split.context);
    return masks_documents_ ? batch_ * mask : drops_in_context_ ? mask : 0;
  }

 private:
  void add(int64_t block, const specs::GroupSpec& group, const specs::ParameterSpec& parameter) {
    const auto b = static_cast<size_t>(block);
    const bool is_stack = parameter.is_of_experts();
    const bool is_looked_up =
        specs::is_root(group) && at(block).made_at_once > 0 && at(block).deferred_elements > 0;
    if (is_stack) experts_[b] += double(parameter.numel());
    if (is_looked_up) embedding_[b] += double(parameter.numel());
    if (is_stack || is_looked_up) return;
    if (largest_[b] == nullptr || parameter.numel() > largest_[b]->numel()) largest_[b] = &parameter;
  }
  // While the gradients of experts' inputs are added up for each token: two rows of the width for each copy,
  // or one and a sum for each row that was received, the gradients of gate and up, and that of the block's
  // output. In addition, the gradients of what experts gave back, if ranks share them; else those of the sum,
  // and of what tensor ranks gather of the output's.
  double inputs_of_experts(int64_t b) const {
    if (!at(b).expert_tokens) return 0;
    const specs::ExpertTokens& tokens = *at(b).expert_tokens;
    const specs::Split& split = model_.split;
    const double copies =
        double(tokens.copies) * tokens.of_busiest(split.expert) / double(split.token_ranks_of_experts());
    const double rows = tokens.capacity > 0 ? double(tokens.experts * tokens.capacity) : copies;
    const double sums = split.expert == 1 || split.travels_as_copies()
                            ? rows
                            : tokens.once_per(split.expert).of_busiest * double(split.expert) /
                                  double(split.token_ranks_of_experts());
    const auto own = double(at(b).output_elements()), width = double(tokens.width);
    const double others =
        split.expert > 1 ? sums * width : 2 * own * (split.sequence_parallel ? double(split.tensor) : 1);
    return batch_ *
           ((rows + std::max(rows, sums)) * width +
            rows * tokens.kept_of_row / double(split.channel_ranks_of_experts()) + own + others) *
           element_;
  }
  // The gradient of an embedding that the first layer's block looks up is computed at the end of its
  // backward, when the rest of the block has been freed.
  double at_end(int64_t b) const {
    const double gradient = embedding_[size_t(b)] * element_;
    return gradient > 0 ? gradient + output(b) - kept(b) : 0;
  }
  double output(int64_t b) const { return batch_ * double(at(b).output_elements()) * element_; }
  bool sends(int64_t block) const {
    return std::any_of(chunks_.begin(), chunks_.end(),
                       [&](const specs::Chunk& chunk) { return chunk.sends && block + 1 == chunk.end; });
  }
  const specs::BlockSpec& at(int64_t block) const { return model_.blocks[static_cast<size_t>(block)]; }
  // Whether the loss is computed over a sharded vocabulary.
  bool has_own_words(int64_t b) const { return model_.split.tensor > 1 && at(b).targets_of_cut > 0; }
  double logit() const { return rounds_ ? element_ : std::max(element_, 4.0); }
  double bytes_beside_logit(int64_t b) const {
    if (rounds_) return 0;
    if (!has_own_words(b)) return 2 * logit();
    return logit() + (element_ < logit() ? element_ : 0);
  }
  double parameter_bytes(int64_t block) const {
    const specs::ParameterSpec* largest = largest_[static_cast<size_t>(block)];
    return largest == nullptr ? 0 : double(largest->numel()) * element_;
  }
  // The copy of the weight with padded rows: Note [Aligned rows] in models/cross_entropy.cpp.
  double aligned_copy(int64_t block) const {
    constexpr int64_t kRowMultiple = 64;
    const specs::ParameterSpec* weight = largest_[static_cast<size_t>(block)];
    return weight == nullptr || weight->shape.front() % kRowMultiple == 0 ? 0 : parameter_bytes(block);
  }

  const ModelTable& model_;
  std::vector<specs::Chunk> chunks_;
  double batch_;
  bool masks_documents_, drops_in_context_;
  double element_;
  double code_;  // bytes of an element in fp8; 0: products are in the model's type
  bool rounds_;  // logits and their gradients are in bf16
  // [block]: the largest parameter that it reads, except for those in the two lists below.
  std::vector<const specs::ParameterSpec*> largest_;
  // [block]: elements of the experts' matrices, and of the embedding that it looks up.
  std::vector<double> experts_, embedding_;
};

}  // namespace

double activation_bytes(const StepInput& input, double batch) {
  const Activations of(input, batch);
  // `held` is what stays in memory between two actions. `most` is the maximum of it together with the working
  // memory of one action.
  double held = 0, most = 0;
  for (const Action& action : input.schedule()) {
    const int64_t block = action.block;
    switch (action.what) {
      case Compute::load:
        held += of.sample();
        break;
      case Compute::forward:
        held += of.left(block, action.keeps_activations);
        break;
      case Compute::recompute:
        held += of.left(block, true) - of.left(block, false);
        break;
      case Compute::backward_input:
        most = std::max(most, held + of.working_of_first_part(block));
        held += of.between(block) - of.left(block, true);
        break;
      case Compute::backward:
        most = std::max(most, held + of.working(block));
        held -= of.left(block, true);
        if (block == 0) held -= of.sample();
        break;
      case Compute::backward_weight:
        most = std::max(most, held + of.working_of_second_part(block));
        held -= of.between(block);
        if (block == 0) held -= of.sample();
        break;
    }
  }
  return most;
}

int64_t largest_batch(const StepInput& input, double bytes) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const auto fits = [&](int64_t batch) {
    return activation_bytes(input, static_cast<double>(batch)) <= bytes;
  };
  // Activations grow with the batch, so that the largest one is found by doubling and then halving the
  // interval.
  int64_t most = 0, too_large = 1;
  for (; too_large < kMost && fits(too_large); too_large *= 2) most = too_large;
  while (too_large - most > 1) {
    const int64_t middle = most + (too_large - most) / 2;
    (fits(middle) ? most : too_large) = middle;
  }
  return most;
}

}  // namespace shardmark::strategies
