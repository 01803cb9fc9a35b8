// Attention of context-parallel ranks without a mask against the same with one, on one device that plays each
// of the ranks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/attention.h"

namespace shardmark {

// Outputs, and gradients of queries, keys and values. The other ranks have the same keys and values.
inline void expect_attention_is_that_with_a_mask(at::Device device, at::ScalarType type, double tolerance,
                                                 int64_t width = 8) {
  constexpr int64_t kSamples = 2, kHeads = 4;
  const Choice llama = choice_from_text(
      "llama(layers=1, width=32, heads=4, kv_heads=4, inner=20, sequence=48, vocabulary=37)");
  const specs::SharedTable whole =
      specs::model_table(resolve(llama, specs::model_spec("llama").options, "model"));
  const auto options = at::TensorOptions(device).dtype(type);
  for (const int64_t context : {2, 3})
    for (int64_t index = 0; index < context; ++index)
      for (const int64_t kv_heads : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{}, rank {} of {}, {} heads of keys", c10::toString(type), index, context,
                                 kv_heads));
        Model model(specs::split_table(*whole, {.context = context, .context_index = index}), type, device);
        model.start_collective = [&](specs::Dimension, specs::Collective what, const at::Tensor& out,
                                     const at::Tensor& in) {
          if (what == specs::Collective::all_gather)
            out.view({context, -1}).copy_(in.view({1, -1}).expand({context, -1}));
          else
            out.view(-1).copy_(in.view({context, -1}).sum(0));
          return [] {};
        };
        const int64_t length = 48;
        const at::Tensor tokens =
            own_tokens(model.table().split, at::arange(length, options.dtype(at::kLong)).unsqueeze(0));
        at::manual_seed(3);
        const auto random = [&](int64_t heads) {
          return at::randn({kSamples, tokens.size(1), heads, width}).to(options);
        };
        std::vector<at::Tensor> inputs;
        for (const int64_t heads : {kHeads, kv_heads, kv_heads})
          inputs.push_back(random(heads).requires_grad_(true));
        const at::Tensor direction = random(kHeads);
        const auto results = [&](const at::Tensor& mask) {
          Batch batch;
          batch.mask = mask;
          const at::Tensor y = causal_attention(model, inputs[0], inputs[1], inputs[2], batch);
          std::vector<at::Tensor> found = torch::autograd::grad({y}, inputs, {direction});
          found.push_back(y.detach());
          return found;
        };
        const std::vector<at::Tensor> without = results({}),
                                      with = results(attention_mask(tokens, tokens, length, type));
        for (size_t i = 0; i < with.size(); ++i)
          EXPECT_LE((without[i] - with[i]).abs().max().item<double>(), tolerance) << i;
      }
}

}  // namespace shardmark
