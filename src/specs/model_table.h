// The table of a model: its parameters, buffers, blocks, groups and FLOPs, without torch. `plan` uses it on a
// laptop, and models/ builds the model's blocks from the same table.
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

// How ranks share every block (tensor parallelism), every sequence (context parallelism) and the experts of
// every layer (expert parallelism), and which of these ranks a table is for. Sources: Shoeybi et al. 2019
// (tensor), Korthikanti et al. 2022 (sequence_parallel), Grattafiori et al. 2024, section 3.3.2 (context),
// Lepikhin et al. 2020, GShard (expert).
struct Split {
  int64_t tensor = 1, tensor_index = 0;
  // Between tensor-parallel regions (Region), each tensor-parallel rank has a part of the tokens.
  bool sequence_parallel = false;
  int64_t context = 1, context_index = 0;
  // The number of ranks that share the experts of a layer. Each has whole experts, and all tokens that go to
  // them.
  int64_t expert = 1, expert_index = 0;
  // With sequence_parallel: whether the inputs that regions gather are gathered again in backward (as in the
  // paper), instead of being kept.
  bool gathers_again = false;
  // How often a token travels to the ranks that have its experts: kDispatchCopies (a copy for each expert),
  // or once to each `dispatch` neighbouring ranks of those that share experts (as DeepSeek-V3 does for nodes:
  // DeepSeek-AI 2024, section 3.2.2).
  int64_t dispatch = 0;
  bool travels_as_copies() const { return dispatch == 0; }
  // The number of ranks over which tokens are sharded between regions.
  int64_t token_ranks() const { return context * (sequence_parallel ? tensor : 1); }
  // The same of a mixture's MLP, and the number over which the channels of each expert are. Ranks that share
  // experts have whole ones, and each sends them its own tokens.
  int64_t token_ranks_of_experts() const { return expert > 1 ? token_ranks() : context; }
  int64_t channel_ranks_of_experts() const { return expert > 1 ? 1 : tensor; }
  bool operator==(const Split&) const = default;
};

// How tensor-parallel ranks shard a parameter: along which dimension, and between which units.
struct Cut {
  int64_t dim = 0;
  // 0: anywhere; all parts have the same length, and the last one may end in padding.
  int64_t units = 0;
  const char* what = "";  // what a unit is, such as "heads"
  // The dimension consists of several pieces, each of which is sharded (queries, keys and values).
  int64_t pieces = 1;
};

// The shard of a parameter that a tensor-parallel or expert-parallel rank has.
struct TensorShard {
  int64_t dim = 0, pieces = 1;
  int64_t whole = 0;  // size of the whole dimension, without padding
  int64_t ranks = 1, index = 0;
  Dimension dimension = Dimension::tensor;  // along which ranks have the other shards
};

// How a parameter is initialized. Its values depend on (seed, name) alone: models/initial.h.
enum class Initial { zeros, ones, normal, uniform };

struct ParameterSpec {
  // "h.0.attn.c_attn.weight": the field's usual names (Hugging Face for GPT-2, torchvision for ResNet). A *
  // stands for the index of the first dimension, because checkpoint files hold the matrices of a stack one by
  // one: "experts.*.w1.weight" is "experts.0.w1.weight" and so on there.
  std::string name;
  std::vector<int64_t> shape;
  Initial initial = Initial::normal;
  double scale = 0.02;                    // standard deviation, or half-width of the uniform range
  double active = 1;                      // share of the elements that a token uses (experts)
  std::optional<Cut> cut = {};            // none: tensor-parallel ranks have all of it
  std::optional<TensorShard> shard = {};  // set if this is a shard
  std::vector<int64_t> whole_shape() const;
  int64_t numel() const;
  // Whether its first dimension is the index of the expert.
  bool is_of_experts() const { return name.find('*') != std::string::npos; }
};

// A buffer without a gradient (batch norm's running statistics). All copies of the model take rank 0's values
// before an evaluation.
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  double value;
  int64_t block;  // the block that reads it
};

// A group of parameters that are communicated together. It usually belongs to one block. A root group has
// what several blocks share.
struct GroupSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
  int64_t first_block = 0;  // first block (in forward order) that reads it
  // The last block that reads it. The group's gradient is complete after the backward of first_block.
  int64_t last_block = 0;
  // Another pipeline stage has the group, too, and each of the two has a part of its gradient.
  bool is_tied = false;
  int64_t numel() const;
  // Whether its parameters are those of experts that this rank has and its expert-parallel neighbours have
  // not. Fewer ranks have the same gradients then.
  bool has_own_experts() const {
    return !parameters.empty() && parameters.front().shard &&
           parameters.front().shard->dimension == Dimension::expert;
  }
};

// A collective that a block makes while it computes, on its own memory: the sums of synchronized batch norm,
// or what tensor-parallel and context-parallel ranks exchange. numel counts the elements of the larger of
// input and output. Where tokens go to the experts that a router chooses, rows travel by all_to_all_v, and
// only the block knows how many go to each rank. numel is then that of all rows of a rank, which is what a
// rank receives in the mean.
struct BlockCall {
  Collective what = Collective::all_reduce;
  int64_t numel = 0, numel_per_sample = 0;
  Element element = Element::fp64;
  Dimension dimension = Dimension::data;
  int64_t row = 0;       // of all_to_all_v: the elements of a row
  bool returns = false;  // whether rows go back to the ranks that they came from
  // Which of the dimension's ranks exchange: those of a process group within that of the dimension. 0 ranks:
  // all of them.
  ProcessGroup among = {0, 1};
  // The share of a backward's FLOPs that its block computes between the start of the call and the wait.
  double hidden_by = 0;
  // Whether the call exchanges tokens with the ranks that have their experts. It has no form in place.
  bool exchanges_tokens() const { return what == Collective::all_to_all || what == Collective::all_to_all_v; }
  bool operator==(const BlockCall&) const = default;
};

// A tensor-parallel region: a part of a block in which each tensor-parallel rank has some of the channels.
// Elements per sample of: its input, which all ranks need (0: nobody waits for the gradient of it); its
// output, which is the sum over ranks (0: it stays sharded); and the keys and values of the whole sequence,
// if its attention needs them. flops: of the matrix products that read the input, forward and per sample.
// keeps_input: what else reads the input keeps it for backward, so that it is not gathered again.
struct Region {
  int64_t enters = 0, leaves = 0, keys_values = 0;
  double flops = 0;
  bool keeps_input = false;
  bool gathers_again(const Split& split) const { return split.gathers_again && enters > 0 && !keeps_input; }
};

// What a block with experts exchanges if ranks share them: the copies of a sample's tokens (one for each
// expert that a token goes to), and their width. capacity: the copies of a sample's tokens that each expert
// takes, where the others are dropped; 0: all. shares: of the copies that each expert gets by a rule of
// routing; empty: the router decides. routing and layer: the rule, and which tokens it gives to which experts
// in this layer. kept_of_row, working_of_row and deferred_of_row: the parts of a block's
// activation_elements, working_elements and deferred_elements that it has for each copy which its experts
// compute. needs_all_tokens: whether each rank needs all tokens of its samples, for the capacity or the
// load-balancing loss. has_aux_loss: whether it is for the latter.
struct ExpertTokens {
  int64_t experts = 0, copies = 0, top_k = 1, width = 0, capacity = 0;
  std::vector<double> shares = {};
  Choice routing = {"learned"};
  int64_t layer = 0;
  double kept_of_row = 0, working_of_row = 0, deferred_of_row = 0;
  // Per sample, of an expert of all tokens: the FLOPs of the products that read its input; 0 if there is
  // none.
  double shared_flops = 0;
  bool needs_all_tokens = false, has_aux_loss = false;
  // The copies that go to the experts of the busiest of this many ranks, in multiples of the mean; 1 if the
  // router decides.
  double of_busiest(int64_t ranks) const;
  // The rows that a sample's tokens are if each travels once to each of `parts` equal parts of the experts:
  // of all parts together, and of the one that gets most. If the router decides, or the tokens are too many
  // to be routed (kMostDraws), those of a router that chooses all experts alike.
  struct Rows {
    double all = 0, of_busiest = 0;
  };
  Rows once_per(int64_t parts) const;
};

// How many of some elements are sharded over tensor-parallel ranks: always (channels), or only with
// sequence_parallel (tokens).
struct CutElements {
  double by_channel = 0, by_token = 0;
};

// What a block keeps in fp8, if its linear layers multiply so: their inputs. `alone`: those that are kept for
// these products alone, and not in the model's type, too. `deferred`: which of the block's deferred_elements
// are factors of such products, those of experts included. *_cut: how many of each tensor-parallel ranks
// shard by channel.
struct ProductInputs {
  double elements = 0, alone = 0, deferred = 0;
  double elements_cut = 0, alone_cut = 0, deferred_cut = 0;
};

struct BlockSpec {
  std::string name;
  double forward_flops = 0;  // per sample; a multiply-add counts as 2
  // The part of forward_flops that computes attention's scores and their product with the values.
  double attention_flops = 0;
  // Elements per sample. activation_elements: what forward keeps for backward, the block's output included.
  // output_shape: the output, which is all that a recomputed block needs of the block before it.
  // working_elements: what backward needs at its peak, in addition to what is kept. logits: how many of the
  // kept elements are logits of the loss. indices: kept 64-bit indices, in addition to activation_elements.
  double activation_elements = 0;
  std::vector<int64_t> output_shape = {};  // of one sample; several samples multiply the first dimension
  double working_elements = 0, logits = 0, indices = 0;
  // The part of working_elements that is freed before the gradients of parameters are computed.
  // Tensor-parallel ranks have a share of it.
  double freed_elements = 0;
  std::vector<Region> regions = {};
  std::optional<ExpertTokens> expert_tokens = {};
  CutElements activations_cut = {}, working_cut = {};
  // For a backward in two parts. deferred_elements: the elements per sample that the first part leaves for
  // the second, which are inputs of matrix products and gradients of their outputs. made_at_once: the
  // elements of the gradients that the first part has already computed, because their layers do not split.
  // The *_cut members say how many of the elements tensor-parallel ranks shard.
  double deferred_elements = 0, made_at_once = 0;
  CutElements deferred_cut = {}, made_cut = {};
  ProductInputs product_inputs = {};  // per sample
  // Whether backward needs the block's output, as that of a ReLU does. If not, an output that was sent is
  // freed.
  bool needs_output = false;
  bool is_output_cut = false;  // by channel
  int64_t targets_of_cut = 0;  // per sample, of a loss over a sharded number of classes
  // In the order in which they are made. split_table() adds those of the regions.
  std::vector<BlockCall> forward_calls = {}, backward_calls = {}, evaluation_calls = {};
  // The output shape of the block before; set for the blocks of a stage.
  std::vector<int64_t> input_shape = {};
  int64_t input_elements() const;   // per sample; 0 for the first block of the model
  int64_t output_elements() const;  // 0 for the block that returns the loss
};

// The shape of one sample, which tells whether a data source fits a model.
struct SampleShape {
  enum class Kind { image, tokens, rows };
  Kind kind = Kind::image;
  std::vector<int64_t> input;  // image: {C, H, W}; tokens: {T}; rows: {features}
  int64_t num_classes = 0;     // classes of a target; for tokens the vocabulary
  int64_t tokens() const { return kind == Kind::tokens ? input.front() : 0; }
};

struct ModelTable {
  std::vector<BlockSpec> blocks;  // in execution order; the last returns the loss
  // Ordered by first_block. A group with first_block < last_block is a root group.
  std::vector<GroupSpec> groups;
  std::vector<BufferSpec> buffers;
  SampleShape sample;
  Split split;                   // the ranks that share the model; the table is for one of them
  std::string flops_formula;     // in words, with its source
  bool has_local_norms = false;  // batch norms with the statistics of a micro-batch
  int64_t num_parameters() const;
  int64_t num_active_parameters() const;  // that a token uses
  // Per sample: 3 x forward, because backward takes twice as much as forward.
  double step_flops() const;
  double attention_share() const;  // share of attention in the FLOPs; 0 for a model without attention
  // The share of the FLOPs that remains if attention counts half: a causal kernel skips the products with
  // later tokens.
  double causal_share() const { return 1 - attention_share() / 2; }
};

// What is known of a model by formula. Registered by src/specs/models/<name>.cpp. table() takes resolved
// options, and throws UsageError if they contradict each other ("width 100 is not a multiple of heads 3").
struct ModelSpec {
  std::string description;
  OptionTable options;
  ModelTable (*table)(const Options& options);
};

// The table of a model with resolved options. Throws UsageError if they contradict each other. Recent tables
// are cached, because a plan or a report asks for the same few thousands of times.
using SharedTable = std::shared_ptr<const ModelTable>;
SharedTable model_table(const Choice& model);

// The table of one rank of a split that split_impossible() accepts.
ModelTable split_table(ModelTable whole, const Split& split);
// The shape of what one rank has of a block's output, as in split_table().
std::vector<int64_t> split_output_shape(const BlockSpec& block, const Split& split);
// Why a model cannot be split like this, and which numbers of ranks work. Empty if it can.
std::string split_impossible(const std::string& name, const ModelTable& whole, const Split& split);

inline const ModelSpec& model_spec(const std::string& name) {
  return Registry<ModelSpec>::instance().get(name, "model");
}

}  // namespace shardmark::specs
