// What a model is made of, by table: parameters, buffers, blocks, groups and FLOPs. No torch: plan uses it on
// a laptop, and models/ builds its blocks from the very same table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "schema/choice.h"
#include "specs/collectives.h"
#include "specs/element_bytes.h"
#include "specs/mesh.h"

namespace shardmark::specs {

// Ranks that share every block and every sequence: which of them a table is for. Sources: Shoeybi et al. 2019
// (tensor), Korthikanti et al. 2022 (sequence_parallel), Grattafiori et al. 2024, section 3.3.2 (context).
struct Split {
  int64_t tensor = 1, tensor_index = 0;
  bool sequence_parallel =
      false;  // between regions (below) each of the tensor ranks has a part of the tokens
  int64_t context = 1, context_index = 0;
  // Ranks over which the tokens between regions are cut.
  int64_t token_ranks() const { return context * (sequence_parallel ? tensor : 1); }
  bool operator==(const Split&) const = default;
};

// How tensor-parallel ranks cut a parameter: along a dimension, between its units.
struct Cut {
  int64_t dim = 0;
  int64_t units = 0;      // 0: anywhere; parts are equally long, and the last one may end in padding
  const char* what = "";  // a unit is: "heads"
  int64_t pieces = 1;     // along the dimension, each of which is cut: queries, keys and values
};

// A tensor-parallel rank's part of a parameter.
struct Part {
  int64_t dim = 0, pieces = 1;
  int64_t whole = 0;  // size of the dimension; without padding
  int64_t ranks = 1, index = 0;
};

// How a parameter starts. Values depend on (seed, name) alone: see models/initial.h.
enum class Initial { zeros, ones, normal, uniform };

struct ParameterSpec {
  std::string name;  // "h.0.attn.c_attn.weight": the field's usual names (Hugging Face for GPT-2, torchvision
                     // for ResNet). A * stands for the index of the first dimension: files hold each matrix
                     // of the stack by itself, "experts.*.w1.weight" as "experts.0.w1.weight" and so on
  std::vector<int64_t> shape;
  Initial initial = Initial::normal;
  double scale = 0.02;            // standard deviation, or half-width of the uniform range
  double active = 1;              // share of it that a token goes through: experts
  std::optional<Cut> cut = {};    // none: tensor-parallel ranks have all of it
  std::optional<Part> part = {};  // that this is
  std::vector<int64_t> whole_shape() const;
  int64_t numel() const;
};

// A buffer (batch norm's running statistics): no gradient, follows rank 0.
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  double value;
  int64_t block;  // that reads it
};

// A group: parameters that move together. Usually one block's; the root group holds what several blocks
// share.
struct GroupSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
  int64_t first_block = 0;  // first block (in forward order) that reads it
  int64_t last_block = 0;   // last block that reads it; its gradient is complete after first_block's backward
  bool is_tied = false;     // another stage of a pipeline has it, too: each has a part of its gradient
  int64_t numel() const;
};

// A collective that a block makes while it computes, on memory of its own: the sums of synchronised batch
// norm, what tensor-parallel ranks exchange. Elements of the larger side.
struct BlockCall {
  Collective what = Collective::all_reduce;
  int64_t numel = 0, numel_per_sample = 0;
  Element element = Element::fp64;
  Dimension dimension = Dimension::data;
  bool operator==(const BlockCall&) const = default;
};

// A part of a block in which each tensor-parallel rank has some of the channels. Elements per sample: of its
// input, which all ranks need (0: nobody waits for its gradient), of its output, the sum of theirs (0: it
// stays cut), and of the keys and values of the whole sequence, which its attention needs.
struct Region {
  int64_t enters = 0, leaves = 0, keys_values = 0;
};

// Of a number of elements: what tensor-parallel ranks cut, and what they cut with sequence_parallel alone.
struct CutElements {
  double by_channel = 0, by_token = 0;
};

struct BlockSpec {
  std::string name;
  double forward_flops = 0;    // per sample; a multiply-add counts 2
  double attention_flops = 0;  // of these, attention's scores and its values by them
  // Per sample. Kept from forward to backward, its output among them; the output alone, which is all that a
  // block that is computed again needs of the one before it; held beside what is kept at the height of its
  // backward; and, of those that are kept, logits of the loss. Beside these, 64-bit indices that are kept.
  double activation_elements = 0;
  std::vector<int64_t> output_shape = {};  // several samples make the first dimension as often as long
  double working_elements = 0, logits = 0, indices = 0;
  std::vector<Region> regions = {};
  CutElements activations_cut = {}, working_cut = {};
  // What the first part of a backward in two leaves for the second, per sample: inputs of products and the
  // gradients of their outputs. And elements of gradients of parameters that it has already, because their
  // layers do not split: of tensor-parallel ranks, those that are cut.
  double deferred_elements = 0, made_at_once = 0;
  CutElements deferred_cut = {}, made_cut = {};
  // Backward needs the output, as that of a ReLU does; otherwise nobody needs one that was sent on.
  bool needs_output = false;
  bool is_output_cut = false;  // by channel
  int64_t targets_of_cut = 0;  // per sample, of a loss over classes that are cut
  // In the order in which they are made; what the regions ask for is added by split_table().
  std::vector<BlockCall> forward_calls = {}, backward_calls = {}, evaluation_calls = {};
  std::vector<int64_t> input_shape = {};  // of a stage's blocks: the output shape of the block before
  int64_t input_elements() const;         // per sample; 0 of the model's first block
  int64_t output_elements() const;        // 0 of the block that returns the loss
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
  Split split;                // the ranks for one of which it is
  std::string flops_formula;  // in words, with its source
  int64_t num_parameters() const;
  int64_t num_active_parameters() const;  // that a token goes through
  double step_flops() const;              // per sample: 3 x forward (forward + twice that for backward)
  double attention_share() const;         // of the FLOPs; 0 for a model without attention
  // What is left of the FLOPs where attention's count by half: a causal kernel leaves out the products with
  // the tokens that come later.
  double causal_share() const { return 1 - attention_share() / 2; }
};

// What is known of a model by formula: registered by src/specs/models/<name>.cpp. table() takes resolved
// options and throws UsageError where they contradict each other ("width 100 is not a multiple of heads 3").
struct ModelSpec {
  std::string description;
  OptionTable options;
  ModelTable (*table)(const Options& options);
};

// The table of a model whose options are resolved; UsageError where they contradict each other. The last ones
// are kept: a plan and a report ask for the same few thousands of times.
using SharedTable = std::shared_ptr<const ModelTable>;
SharedTable model_table(const Choice& model);

// The table of one of the ranks of a split. Of what split_impossible() accepts.
ModelTable split_table(ModelTable whole, const Split& split);
// What one of the ranks has of a block's output, as in split_table().
std::vector<int64_t> split_output_shape(const BlockSpec& block, const Split& split);
// Why a model cannot be split like this, and which numbers of ranks can; empty where it can.
std::string split_impossible(const std::string& name, const ModelTable& whole, const Split& split);

inline const ModelSpec& model_spec(const std::string& name) {
  return Registry<ModelSpec>::instance().get(name, "model");
}

}  // namespace shardmark::specs
