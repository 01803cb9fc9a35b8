// What a model is made of, by table: parameters, buffers, blocks, groups and FLOPs. No torch: plan uses it on
// a laptop, and models/ builds its blocks from the very same table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/registry.h"
#include "schema/choice.h"
#include "specs/collectives.h"
#include "specs/element_bytes.h"

namespace shardmark::specs {

// How a parameter starts. Values depend on (seed, name) alone: see models/initial.h.
enum class Initial { zeros, ones, normal, uniform };

struct ParameterSpec {
  std::string name;  // "h.0.attn.c_attn.weight": the field's usual names (Hugging Face for GPT-2, torchvision
                     // for ResNet). A * stands for the index of the first dimension: files hold each matrix
                     // of the stack by itself, "experts.*.w1.weight" as "experts.0.w1.weight" and so on
  std::vector<int64_t> shape;
  Initial initial = Initial::normal;
  double scale = 0.02;  // standard deviation, or half-width of the uniform range
  double active = 1;    // share of it that a token goes through: experts
  int64_t numel() const;
};

// A buffer (batch norm's running statistics): no gradient, follows rank 0.
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  double value;
};

// A group: parameters that move together. Usually one block's; the root group holds what several blocks
// share.
struct GroupSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
  int64_t first_block = 0;  // first block (in forward order) that reads it
  int64_t last_block = 0;   // last block that reads it; its gradient is complete after first_block's backward
  int64_t numel() const;
};

// A collective that a block makes while it computes, in place, on memory of its own, over the ranks that
// share a batch: the sums of synchronised batch norm.
struct BlockCall {
  Collective what = Collective::all_reduce;
  int64_t numel = 0;
  Element element = Element::fp64;
  bool operator==(const BlockCall&) const = default;
};

struct BlockSpec {
  std::string name;
  double forward_flops = 0;    // per sample; a multiply-add counts 2
  double attention_flops = 0;  // of these, attention's scores and its values by them
  // Per sample. Kept from forward to backward, its output among them; the output alone, which is all that a
  // block that is computed again needs of the one before it; held beside what is kept at the height of its
  // backward; and, of those that are kept, logits of the loss. Beside these, 64-bit indices that are kept.
  double activation_elements = 0, output_elements = 0, working_elements = 0, logits = 0, indices = 0;
  std::vector<BlockCall> forward_calls = {}, backward_calls = {};  // in the order in which they are made
};

// What one sample looks like, so that a data source can be matched with a model.
struct SampleShape {
  enum class Kind { image, tokens, rows };
  Kind kind = Kind::image;
  std::vector<int64_t> input;  // image: {C, H, W}; tokens: {T}; rows: {features}
  int64_t num_classes = 0;     // of a target; tokens: the vocabulary
  int64_t tokens() const { return kind == Kind::tokens ? input.front() : 0; }
};

struct ModelTable {
  std::vector<BlockSpec> blocks;  // in execution order; the last returns the loss
  std::vector<GroupSpec>
      groups;  // ordered by first_block; a group with first_block < last_block is a root group
  std::vector<BufferSpec> buffers;
  SampleShape sample;
  std::string flops_formula;  // in words, with its source
  int64_t num_parameters() const;
  int64_t num_active_parameters() const;  // that a token goes through
  double step_flops() const;              // per sample: 3 x forward (forward + twice that for backward)
  double attention_share() const;         // of the FLOPs; 0 for a model without attention
};

// What is known of a model by formula: registered by src/specs/models/<name>.cpp. table() takes resolved
// options and throws UsageError where they contradict each other ("width 100 is not a multiple of heads 3").
struct ModelSpec {
  std::string description;
  OptionTable options;
  ModelTable (*table)(const Options& options);
};

inline const ModelSpec& model_spec(const std::string& name) {
  return Registry<ModelSpec>::instance().get(name, "model");
}

}  // namespace shardmark::specs
