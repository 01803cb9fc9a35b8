// Computes the table of one rank under tensor, sequence, context and expert parallelism: its shards of the
// parameters, its share of activations and FLOPs, and the collectives that its blocks make. Sources of the
// collectives: Shoeybi et al., Megatron-LM, 2019 (an all-reduce after each region, and one of the gradient of
// its input); Korthikanti et al. 2022, section 4.2.2 (the same as an all-gather and a reduce-scatter over
// tokens). Unlike there, the gathered input of a region is kept for the gradients of its weights, so that
// sequence_parallel moves as many bytes as tensor parallelism alone, unless Split::gathers_again. Experts are
// shared as in GShard (Lepikhin et al. 2020, section 3.2), with a capacity, or without one, so that no token
// is dropped. Without one, a token may travel once to each rank, or to each node (Split::dispatch).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "specs/model_table.h"
#include "specs/tokens.h"

namespace shardmark::specs {
namespace {

// The length of each rank's part of a dimension, or of one of its pieces. Long parts that may end anywhere
// are whole tiles of a matrix product, because others are slow in 16 bits (Note [Aligned rows] in
// models/cross_entropy.cpp); Megatron-LM pads its words for the same reason. Short ones would be mostly
// padding.
int64_t length_of_part(const Cut& cut, int64_t size, int64_t tensor) {
  constexpr int64_t kTile = 64, kLong = 16 * kTile;
  const int64_t each = (size + tensor - 1) / tensor, tiles = (each + kTile - 1) / kTile * kTile;
  const bool has_last = (tensor - 1) * tiles < size;  // or else the last rank would have padding alone
  return cut.units == 0 && each >= kLong && has_last ? tiles : each;
}

// The shard of a parameter that one rank has. Parts are equally long, so that the last one may end in
// padding.
ParameterSpec part_of(ParameterSpec parameter, const Split& split) {
  if (parameter.is_of_experts() && split.expert > 1) {
    const int64_t experts = parameter.shape.front();
    parameter.shard = TensorShard{0, 1, experts, split.expert, split.expert_index, Dimension::expert};
    parameter.shape.front() = experts / split.expert;
    return parameter;
  }
  if (!parameter.cut || split.tensor == 1) return parameter;
  const Cut& cut = *parameter.cut;
  int64_t& size = parameter.shape[static_cast<size_t>(cut.dim)];
  parameter.shard = TensorShard{cut.dim, cut.pieces, size, split.tensor, split.tensor_index};
  size = cut.pieces * length_of_part(cut, size / cut.pieces, split.tensor);
  return parameter;
}

// The elements that one rank has: those sharded by channel, those sharded by token (with sequence_parallel
// alone), and all others.
double part_of(double elements, const CutElements& cut, const Split& split) {
  const auto tensor = static_cast<double>(split.tensor);
  const double by_token = split.sequence_parallel ? tensor : 1;
  return elements - cut.by_channel - cut.by_token + cut.by_channel / tensor + cut.by_token / by_token;
}

ProductInputs part_of(const ProductInputs& inputs, const Split& split) {
  const auto context = static_cast<double>(split.context);
  return {.elements = part_of(inputs.elements, {.by_channel = inputs.elements_cut}, split) / context,
          .alone = part_of(inputs.alone, {.by_channel = inputs.alone_cut}, split) / context,
          .deferred = part_of(inputs.deferred, {.by_channel = inputs.deferred_cut}, split) / context};
}

// Adds the calls of regions to a block, with elements per sample, in the order in which forward and
// backward make them. Backward goes through the regions in reverse and makes the transposed operations:
// with sequence_parallel a reduce-scatter of gradients where forward gathers tokens, and an all-gather
// where forward reduce-scatters; without it, an all-reduce of the gradient of a region's input, for which
// forward needs no call.
class RegionCalls {
 public:
  explicit RegionCalls(const Split& split) : split_(split) {}

  void add_to(BlockSpec& block) const {
    for (const Region& region : block.regions) {
      if (region.enters > 0 && split_.sequence_parallel)
        forward(block, {Collective::all_gather, Dimension::tensor}, of_own_tokens(region.enters));
      if (region.keys_values > 0 && split_.context > 1)
        forward(block, {Collective::all_gather, Dimension::context}, region.keys_values / split_.tensor);
      if (region.leaves > 0 && split_.tensor > 1)
        forward(block,
                {split_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
                 Dimension::tensor},
                of_own_tokens(region.leaves));
    }
    for (auto region = block.regions.rbegin(); region != block.regions.rend(); ++region) {
      if (region->leaves > 0 && split_.sequence_parallel)
        backward(block, {Collective::all_gather, Dimension::tensor}, of_own_tokens(region->leaves));
      if (region->keys_values > 0 && split_.context > 1)
        backward(block, {Collective::reduce_scatter, Dimension::context},
                 region->keys_values / split_.tensor);
      // The layers that read the input compute two products each, of equally many FLOPs. The first ones hide
      // the gather, and the others the sum: models/parallel.h.
      const double share = block.forward_flops > 0 ? region->flops / (2 * block.forward_flops) : 0;
      if (region->gathers_again(split_))
        backward(block, {Collective::all_gather, Dimension::tensor}, of_own_tokens(region->enters), share);
      if (region->enters > 0 && split_.tensor > 1)
        backward(block,
                 {split_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
                  Dimension::tensor},
                 of_own_tokens(region->enters), share);
    }
  }

  // Ranks first tell each other how many rows they send to each expert, or once to each rank. A token travels
  // with the weights that it gives experts, and so do the gradients of weights on the way back:
  // models/dispatch.cpp. If experts have a capacity, every rank sends that many copies to each, and nothing
  // is told.
  void add_expert_tokens(BlockSpec& block) const {
    const int64_t experts = block.expert_tokens->experts;
    const int64_t copies = block.expert_tokens->copies / split_.token_ranks_of_experts();
    const int64_t width = block.expert_tokens->width;
    if (const int64_t capacity = block.expert_tokens->capacity; capacity > 0) {
      const What exchange{Collective::all_to_all, Dimension::expert};
      const int64_t rows = experts * capacity;
      forward(block, exchange, rows * (width + 1));
      forward(block, exchange, rows * width);
      block.backward_calls.insert(block.backward_calls.begin(),
                                  {of(exchange, rows * width), of(exchange, rows * (width + 1))});
      return;
    }
    if (split_.travels_as_copies())
      return add_exchanges(block, {{{0, 1}, split_.expert * experts, copies, 1}});
    // Once to each of several groups of neighbouring ranks, and then, if these have several ranks, to each of
    // those. A row has the weights of all experts of its receivers.
    const int64_t groups = split_.expert / split_.dispatch;
    std::vector<Exchange> exchanges = {
        {{groups, split_.dispatch}, groups * groups, rows_of_rank(block, groups), experts / groups}};
    if (split_.dispatch > 1)
      exchanges.push_back({{split_.dispatch, 1},
                           split_.dispatch * split_.dispatch,
                           rows_of_rank(block, split_.expert),
                           experts / split_.expert});
    add_exchanges(block, exchanges);
  }

  // Ranks exchange a few numbers for each token and rank: models/parallel.cpp.
  void add_loss(BlockSpec& block) const {
    const int64_t each = block.targets_of_cut / split_.context * split_.tensor;
    const auto gather = [](int64_t numel) {
      return of({Collective::all_gather, Dimension::tensor}, numel, Element::master);
    };
    block.forward_calls.push_back(gather(2 * each));
    block.evaluation_calls.push_back(gather(4 * each));
  }

 private:
  // An exchange of rows of tokens, each with some weights, among ranks that have told each other their
  // numbers of rows.
  struct Exchange {
    ProcessGroup among;
    int64_t counts;    // of all of them
    int64_t num_rows;  // of a rank, per sample
    int64_t weights;   // of a row
  };
  // One after the other in forward, and back in reverse. Weights travel one way in forward, and their
  // gradients the other way in backward.
  void add_exchanges(BlockSpec& block, const std::vector<Exchange>& exchanges) const {
    const int64_t width = block.expert_tokens->width;
    std::vector<BlockCall> forward, backward;
    const auto rows = [&](const Exchange& exchange, int64_t weights, bool returns) {
      const int64_t row = width + weights;
      return BlockCall{.what = Collective::all_to_all_v,
                       .numel_per_sample = exchange.num_rows * row,
                       .element = Element::compute,
                       .dimension = Dimension::expert,
                       .row = row,
                       .returns = returns,
                       .among = exchange.among};
    };
    for (const Exchange& exchange : exchanges) {
      forward.push_back({.what = Collective::all_gather,
                         .numel = exchange.counts,
                         .element = Element::int64,
                         .dimension = Dimension::expert,
                         .among = exchange.among});
      forward.push_back(rows(exchange, exchange.weights, false));
      backward.push_back(rows(exchange, 0, false));
    }
    for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
      forward.push_back(rows(*exchange, 0, true));
      backward.push_back(rows(*exchange, exchange->weights, true));
    }
    for (auto* calls : {&block.forward_calls, &block.evaluation_calls})
      calls->insert(calls->end(), forward.begin(), forward.end());
    block.backward_calls.insert(block.backward_calls.begin(), backward.begin(), backward.end());
  }
  int64_t rows_of_rank(const BlockSpec& block, int64_t parts) const {
    return std::llround(block.expert_tokens->once_per(parts).all /
                        static_cast<double>(split_.token_ranks_of_experts()));
  }
  struct What {
    Collective what;
    Dimension dimension;
  };
  int64_t of_own_tokens(int64_t elements) const { return elements / split_.context; }
  static BlockCall of(What what, int64_t numel, Element element = Element::compute) {
    return {what.what, 0, numel, element, what.dimension};
  }
  static void forward(BlockSpec& block, What what, int64_t numel) {
    block.forward_calls.push_back(of(what, numel));
    block.evaluation_calls.push_back(of(what, numel));
  }
  static void backward(BlockSpec& block, What what, int64_t numel, double hidden_by = 0) {
    block.backward_calls.push_back(of(what, numel));
    block.backward_calls.back().hidden_by = hidden_by;
  }
  const Split& split_;
};

// The block of a mixture whose experts are whole, although tensor-parallel ranks share the block: their MLPs
// are no tensor-parallel region, but work on the rank's own tokens. A shared expert has a region of its own.
BlockSpec with_whole_experts(BlockSpec block) {
  const ExpertTokens& tokens = *block.expert_tokens;
  const double gathered = static_cast<double>(block.output_elements());  // the input of a region
  const bool has_shared = tokens.shared_flops > 0;
  const auto attention = std::find_if(block.regions.begin(), block.regions.end(),
                                      [](const Region& region) { return region.keys_values > 0; });
  const Region shared{attention->enters, attention->leaves, 0, tokens.shared_flops};
  if (has_shared) {  // the experts keep the rank's own tokens
    block.product_inputs.alone += gathered;
    block.product_inputs.deferred += 2 * gathered;
  }
  block.regions.erase(attention + 1, block.regions.end());
  if (has_shared) block.regions.push_back(shared);
  block.activations_cut.by_token =
      block.activation_elements - block.activations_cut.by_channel - (has_shared ? 2 : 1) * gathered;
  block.working_cut = {.by_token = block.working_elements};
  // A region defers its gathered input, and the gathered gradient of its output.
  block.deferred_cut.by_token =
      block.deferred_elements - block.deferred_cut.by_channel - (has_shared ? 4 : 2) * gathered;
  return block;
}

// What a rank receives is kept, with the weights, and in which order its experts take it; in the mean as
// much as it sends. What it sends, and what comes back, is freed. The table is that of the busiest rank,
// if a rule says which that is. Rows for experts with a capacity are kept on one device, too.
void add_received_tokens(BlockSpec& block, const Split& split) {
  const ExpertTokens& tokens = *block.expert_tokens;
  const auto token_ranks = static_cast<double>(split.token_ranks_of_experts());
  const double copies = static_cast<double>(tokens.copies) / token_ranks,
               computed = copies * tokens.of_busiest(split.expert);  // that experts compute
  double rows = computed;                                            // that it has received
  auto weights = 1.0;                                                // of a row
  if (split.travels_as_copies()) {
    block.indices += computed;
  } else {
    const ExpertTokens::Rows once = tokens.once_per(split.expert);
    const auto own_tokens = copies / static_cast<double>(tokens.top_k);
    rows = once.of_busiest * static_cast<double>(split.expert) / token_ranks;
    const int64_t own_experts = tokens.experts / split.expert;
    weights = static_cast<double>(own_experts);
    // Rows that are sent keep which weights travel with them, and their order by token; tokens keep where
    // their rows begin. The copies that experts compute keep the same, in place of one device's order.
    double sent = once.all / token_ranks, senders = own_tokens;
    if (split.dispatch > 1) {
      const int64_t groups = split.expert / split.dispatch;
      const ExpertTokens::Rows first = tokens.once_per(groups);
      const double received = first.of_busiest * static_cast<double>(groups) / token_ranks;
      sent = sent * first.of_busiest * static_cast<double>(groups) / first.all + first.all / token_ranks;
      senders += received;
    }
    block.indices += 2 * sent + senders + 2 * computed + rows - copies;
  }
  block.activation_elements +=
      rows * (static_cast<double>(tokens.width) + weights) + (computed - copies) * tokens.kept_of_row;
  block.working_elements +=
      rows * (static_cast<double>(tokens.width) + weights) + (computed - copies) * tokens.working_of_row;
  // What experts have received, and the gradients of what they give back.
  block.deferred_elements += rows * (2 * static_cast<double>(tokens.width) + weights - 1) +
                             (computed - copies) * tokens.deferred_of_row;
  // The input of an expert's last product is kept as it is, the gradients of the first two are codes in fp8.
  block.product_inputs.deferred += (computed - copies) * tokens.deferred_of_row * 2 / 3;
}

BlockSpec part_of(BlockSpec block, const Split& split) {
  if (block.expert_tokens && split.expert > 1 && split.tensor > 1)
    block = with_whole_experts(std::move(block));
  const auto tensor = static_cast<double>(split.tensor), context = static_cast<double>(split.context);
  double gathered = 0;  // keys and values of other ranks
  // The inputs of regions that are gathered again: what forward does not keep of them, and the largest.
  double again = 0, most_again = 0;
  for (Region& region : block.regions) {
    region.flops /= tensor * context;
    gathered += static_cast<double>(region.keys_values) / tensor * (1 - 1 / context);
    if (!region.gathers_again(split)) continue;
    again += static_cast<double>(region.enters) / context * (1 - 1 / tensor);
    most_again = std::max(most_again, static_cast<double>(region.enters) / context);
  }
  block.activation_elements =
      part_of(block.activation_elements, block.activations_cut, split) / context + gathered - again;
  block.working_elements =
      part_of(block.working_elements, block.working_cut, split) / context + gathered + most_again;
  block.product_inputs = part_of(block.product_inputs, split);
  if (ProductInputs& inputs = block.product_inputs; inputs.elements > 0)
    for (const Region& region : block.regions)
      if (region.gathers_again(split))
        for (double* const all : {&inputs.elements, &inputs.alone, &inputs.deferred})
          *all -= static_cast<double>(region.enters) / context;
  block.freed_elements /= tensor * context;
  block.deferred_elements = part_of(block.deferred_elements, block.deferred_cut, split) / context;
  block.made_at_once = part_of(block.made_at_once, block.made_cut, split);
  if (block.targets_of_cut > 0) block.logits /= tensor;
  block.logits /= context;
  block.indices /= static_cast<double>(block.expert_tokens ? split.token_ranks_of_experts() : split.context);
  block.forward_flops /= tensor * context;
  block.attention_flops /= tensor * context;
  block.output_shape = split_output_shape(block, split);
  // The router of a mixture keeps the tokens that enter it, which the region does not once all are gathered.
  if (block.expert_tokens && split.sequence_parallel &&
      (split.expert == 1 || block.expert_tokens->shared_flops > 0)) {
    const auto own = static_cast<double>(block.output_elements());
    block.activation_elements += own;
    block.deferred_elements += own;
  }
  RegionCalls(split).add_to(block);
  if (block.expert_tokens && split.expert > 1) {
    if (block.expert_tokens->capacity == 0) add_received_tokens(block, split);
    RegionCalls(split).add_expert_tokens(block);
  }
  return block;
}

bool has_cuts(const ModelTable& table) {
  return std::any_of(table.groups.begin(), table.groups.end(), [](const GroupSpec& group) {
    return std::any_of(group.parameters.begin(), group.parameters.end(),
                       [](const ParameterSpec& parameter) { return parameter.cut.has_value(); });
  });
}

// Whether the blocks' experts need all tokens of a micro-batch.
bool needs_all_tokens(const ModelTable& table) {
  return std::any_of(table.blocks.begin(), table.blocks.end(), [](const BlockSpec& block) {
    return block.expert_tokens && block.expert_tokens->needs_all_tokens;
  });
}

bool has_capacity(const ModelTable& table) {
  return std::any_of(table.blocks.begin(), table.blocks.end(), [](const BlockSpec& block) {
    return block.expert_tokens && block.expert_tokens->capacity > 0;
  });
}

std::string dispatches_that_cut(int64_t ranks) {
  std::string text = "copy or rank";
  for (int64_t each = ranks / 2; each > 1; --each)
    if (ranks % each == 0) text = fmt::format("{}, {}", each, text);
  return text;
}

// Whether the blocks' experts add a loss of their own to gradients.
bool has_aux_loss(const ModelTable& table) {
  return std::any_of(table.blocks.begin(), table.blocks.end(), [](const BlockSpec& block) {
    return block.expert_tokens && block.expert_tokens->has_aux_loss;
  });
}

bool has_attention(const ModelTable& table) {
  return std::any_of(table.blocks.begin(), table.blocks.end(), [](const BlockSpec& block) {
    return std::any_of(block.regions.begin(), block.regions.end(),
                       [](const Region& region) { return region.keys_values > 0; });
  });
}

// Why the parameters cannot be sharded over this number of ranks. Empty if they can.
std::string uncuttable(const ModelTable& table, int64_t tensor, bool shares_experts) {
  for (const GroupSpec& group : table.groups)
    for (const ParameterSpec& parameter : group.parameters) {
      if (!parameter.cut || (shares_experts && parameter.is_of_experts())) continue;
      const int64_t units = parameter.cut->units,
                    size = parameter.shape[static_cast<size_t>(parameter.cut->dim)];
      if (units > 0 && units % tensor != 0) return fmt::format("{} {}", units, parameter.cut->what);
      const int64_t each = length_of_part(*parameter.cut, size, tensor);
      // Parts are equally long, so that only the end of the last one may be padding. A last part without
      // any element is refused.
      if (units == 0 && (tensor - 1) * each >= size)
        return fmt::format("{} {} in parts of {}", size, parameter.cut->what, each);
    }
  return {};
}

std::string numbers_that_cut(const ModelTable& table, bool shares_experts) {
  constexpr int64_t kMost = 64;
  std::string text;
  for (int64_t ranks = 1; ranks <= kMost; ++ranks)
    if (uncuttable(table, ranks, shares_experts).empty())
      text += (text.empty() ? "" : ", ") + std::to_string(ranks);
  return text;
}

int64_t num_experts(const ModelTable& table) {
  for (const GroupSpec& group : table.groups)
    for (const ParameterSpec& parameter : group.parameters)
      if (parameter.is_of_experts()) return parameter.shape.front();
  return 0;
}

// Experts that a rank has alone become a group of their own, because their gradients are summed over fewer
// ranks than those of the rest of their block.
void separate_experts(ModelTable& table) {
  std::vector<GroupSpec> groups;
  for (GroupSpec& group : table.groups) {
    const auto first = std::stable_partition(group.parameters.begin(), group.parameters.end(),
                                             [](const auto& one) { return !one.is_of_experts(); });
    GroupSpec own{
        group.name + ".experts", {first, group.parameters.end()}, group.first_block, group.last_block};
    group.parameters.erase(first, group.parameters.end());
    groups.push_back(std::move(group));
    if (!own.parameters.empty()) groups.push_back(std::move(own));
  }
  table.groups = std::move(groups);
}

}  // namespace

double ExpertTokens::of_busiest(int64_t ranks) const {
  double most = 1 / static_cast<double>(ranks);
  const int64_t own = experts / ranks;
  if (!shares.empty())
    for (auto first = shares.begin(); first != shares.end(); first += own)
      most = std::max(most, std::accumulate(first, first + own, 0.0));
  return most * static_cast<double>(ranks);
}

ExpertTokens::Rows ExpertTokens::once_per(int64_t parts) const {
  const int64_t tokens = copies / top_k;
  // A rule says which experts a token goes to, so that rows are counted. If a router decides, or the tokens
  // are too many to be counted, the expected number is taken.
  const bool is_drawn = !is_learned(routing) && tokens <= kMostDraws / std::max(experts, top_k);
  if (!is_drawn) {
    const double all = static_cast<double>(tokens) * distinct_parts(parts, experts, top_k);
    return {all, all / static_cast<double>(parts)};
  }
  const std::vector<int64_t> rows = rows_once_per(routing, {experts, top_k, tokens}, layer, parts);
  return {static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t{0})),
          static_cast<double>(*std::max_element(rows.begin(), rows.end()))};
}

std::vector<int64_t> split_output_shape(const BlockSpec& block, const Split& split) {
  std::vector<int64_t> shape = block.output_shape;
  if (shape.empty()) return shape;
  if (block.is_output_cut) shape.back() /= split.tensor;
  if (shape.size() == 2) shape.front() = std::max<int64_t>(1, shape.front() / split.token_ranks());
  return shape;
}

std::string split_impossible(const std::string& name, const ModelTable& whole, const Split& split) {
  const int64_t sequence = whole.sample.tokens();
  if (split.sequence_parallel && split.tensor == 1)
    return "sequence_parallel cuts tokens over the ranks of tensor; take tensor 2 or more";
  if (split.tensor > 1 && !has_cuts(whole))
    return fmt::format(
        "the blocks of {} are not cut over tensor ranks; those of gpt2, llama, moe and mlp are", name);
  if (split.context > 1 && !has_attention(whole))
    return fmt::format("samples of {} are not cut over context ranks; those of gpt2, llama and moe are",
                       name);
  if (split.context > 1 && needs_all_tokens(whole))
    return "the capacity and the aux_loss of experts are those of whole samples, and context ranks have "
           "a part of each; take 0 for both, or context 1";
  if (split.tensor > 1 && split.expert > 1 && needs_all_tokens(whole))
    return "the capacity and the aux_loss of experts are those of whole samples, and tensor ranks that share "
           "experts have a part of each; take 0 for both, or tensor 1";
  if (split.expert > 1) {
    const int64_t experts = num_experts(whole);
    if (experts == 0)
      return fmt::format("{} has no experts that ranks could share; take moe or moe_8x7b", name);
    if (split.tensor > 1 && (!split.sequence_parallel || split.expert % split.tensor != 0))
      return fmt::format(
          "tensor ranks share whole experts if each has tokens of its own; take sequence_parallel and an "
          "expert that is a multiple of tensor {}, or expert 1, which cuts each expert over tensor ranks",
          split.tensor);
    if (experts % split.expert != 0)
      return fmt::format("expert {} does not divide the {} experts of {}", split.expert, experts, name);
    if (!split.travels_as_copies() && has_capacity(whole))
      return "rows that are filled up to a capacity travel for each expert; take dispatch copy, or capacity "
             "0";
    if (split.dispatch > 1 && (split.dispatch >= split.expert || split.expert % split.dispatch != 0))
      return fmt::format(
          "dispatch {} does not cut the {} ranks that share experts into several groups of as many; take {}",
          split.dispatch, split.expert, dispatches_that_cut(split.expert));
  }
  if (split.tensor > 1 && has_aux_loss(whole))
    return "every tensor rank would add the aux_loss of all tokens; take aux_loss 0, or tensor 1";
  if (const std::string units = uncuttable(whole, split.tensor, split.expert > 1); !units.empty())
    return fmt::format("tensor {} does not cut the {} of {} evenly; of up to 64 ranks these do: {}",
                       split.tensor, units, name, numbers_that_cut(whole, split.expert > 1));
  if (split.sequence_parallel && sequence == 0)
    return fmt::format("sequence_parallel needs a model of sequences; {} has none", name);
  if (split.context > 1 && sequence % (2 * split.context) != 0)
    return fmt::format(
        "a sequence of {} tokens is not a multiple of 2 x context {}: each rank takes two parts", sequence,
        split.context);
  if (split.sequence_parallel && sequence / split.context % split.tensor != 0)
    return fmt::format("{} tokens of a sequence are not a multiple of tensor {}, as sequence_parallel needs",
                       sequence / split.context, split.tensor);
  return {};
}

ModelTable split_table(ModelTable table, const Split& split) {
  table.split = split;
  if (split == Split{}) return table;
  for (GroupSpec& group : table.groups)
    for (ParameterSpec& parameter : group.parameters) parameter = part_of(std::move(parameter), split);
  if (split.expert > 1) separate_experts(table);
  for (BlockSpec& block : table.blocks) {
    block = part_of(std::move(block), split);
    if (block.targets_of_cut > 0 && split.tensor > 1) RegionCalls(split).add_loss(block);
  }
  return table;
}

}  // namespace shardmark::specs
