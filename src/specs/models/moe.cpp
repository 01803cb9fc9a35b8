// moe, moe_8x7b: a Llama whose MLPs are mixtures of experts (Jiang et al. 2024, "Mixtral of Experts"). Names
// are those of Hugging Face's MixtralForCausalLM. The matrices of all experts of a layer are one parameter,
// whose name has a * where a checkpoint file has the index of the expert (ParameterSpec).
#include "specs/models/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "specs/models/llama.h"
#include "specs/models/parameters.h"
#include "specs/routing.h"

namespace shardmark::specs {

MoeShape moe_shape(const Options& options) {
  const OptionValue* const capacity = options.find("capacity");  // later options, left out at their default
  const OptionValue* const routing = options.find("routing");
  MoeShape s{integer(options, "experts"),
             integer(options, "top_k"),
             integer(options, "shared_inner"),
             options.at("aux_loss").get<double>(),
             capacity == nullptr ? 0 : capacity->get<double>(),
             routing == nullptr ? Choice{"learned"} : choice_from_text(routing->get<std::string>())};
  if (s.top_k > s.experts)
    throw UsageError(fmt::format(
        "moe: top_k {} is more than experts {}; a token goes to top_k different ones", s.top_k, s.experts));
  if (!is_learned(s.routing)) expert_shares(s.routing, s.experts, s.top_k);
  return s;
}

int64_t expert_capacity(const MoeShape& moe, int64_t tokens_per_sample) {
  constexpr double kRounding = 1e-9;
  const double mean = static_cast<double>(tokens_per_sample * moe.top_k) / static_cast<double>(moe.experts);
  return static_cast<int64_t>(std::ceil(moe.capacity * mean - kRounding));
}

namespace {

// top_k of `experts` matrices are used by each token. Dimension `inner_dim` of [experts, out, in] is that of
// the inner channels, which tensor-parallel ranks share.
ParameterSpec experts_matrix(const MoeShape& moe, const std::string& name, std::vector<int64_t> shape,
                             double deviation, int64_t inner_dim) {
  shape.insert(shape.begin(), moe.experts);
  const int64_t inner = shape[static_cast<size_t>(inner_dim)];
  ParameterSpec spec =
      cut(normal(name, std::move(shape), deviation), inner_dim, inner, "inner channels of each expert");
  spec.active = static_cast<double>(moe.top_k) / static_cast<double>(moe.experts);
  return spec;
}

LlamaMlp experts_mlp(const LlamaShape& s, const MoeShape& moe, const std::string& layer) {
  const std::string name = layer + ".block_sparse_moe", experts = name + ".experts.*";
  const auto c = static_cast<double>(s.width), e = static_cast<double>(moe.experts);
  const auto k = static_cast<double>(moe.top_k), i = static_cast<double>(s.inner);
  const auto capacity = static_cast<double>(expert_capacity(moe, s.sequence));
  // Rows that experts compute for each token: its copies, or with a capacity that many for each expert.
  const double rows = capacity > 0 ? e * capacity / static_cast<double>(s.sequence) : k;
  // With a capacity the rows are kept with their weights, and where each is and where each copy went.
  const double kept_rows = capacity > 0 ? rows * (c + 1) : 0, indices = capacity > 0 ? rows + k : 0;
  // What a layer keeps: gate and up of each chosen expert, the weights of the chosen experts, and the
  // probabilities of all experts for the auxiliary loss. Its indices: which experts a token has chosen, and
  // where its copies are in the order by expert. What a backward in two parts defers: for each chosen expert
  // the input of w2 and the gradients of gate and up, and for the router the gradient of its output.
  LlamaMlp mlp{
      .parameters = {normal(name + ".gate.weight", {moe.experts, s.width}, 0.02),
                     experts_matrix(moe, experts + ".w1.weight", {s.inner, s.width}, 0.02, 1),
                     experts_matrix(moe, experts + ".w3.weight", {s.inner, s.width}, 0.02, 1),
                     experts_matrix(moe, experts + ".w2.weight", {s.width, s.inner}, llama_residual(s), 2)},
      .forward_flops = 2 * c * e + 6 * std::min(k, rows) * c * i,  // without the zeros that fill up
      .first_flops = 4 * std::min(k, rows) * c * i,
      .activation_elements = 2 * rows * i + k + kept_rows + (moe.aux_loss > 0 ? e : 0),
      .working_elements = rows * (c + 4 * i) + kept_rows,
      .indices = 2 * k + indices,
      .deferred_elements = 3 * rows * i + (capacity > 0 ? 2 * rows * c : 0) + e,
      .uncut_activations = k + kept_rows + (moe.aux_loss > 0 ? e : 0),
      .uncut_working = rows * c + kept_rows,
      .uncut_deferred = (capacity > 0 ? 2 * rows * c : 0) + e,
      .num_logits = moe.experts,
      .product_inputs = {.deferred = 2 * rows * i, .deferred_cut = 2 * rows * i}};  // the last two
  if (moe.shared_inner == 0) return mlp;
  const LlamaMlp shared = swiglu_mlp(s, name + ".shared_expert", moe.shared_inner);
  mlp.parameters.insert(mlp.parameters.end(), shared.parameters.begin(), shared.parameters.end());
  mlp.forward_flops += shared.forward_flops;
  mlp.first_flops += shared.first_flops;
  mlp.activation_elements += shared.activation_elements;
  mlp.deferred_elements += shared.deferred_elements;
  const ProductInputs& of_shared = shared.product_inputs;
  // The experts and the router keep the tokens, too, and what they defer of them.
  mlp.product_inputs = {
      of_shared.elements,     of_shared.alone - c, mlp.product_inputs.deferred + of_shared.deferred - 2 * c,
      of_shared.elements_cut, of_shared.alone_cut, mlp.product_inputs.deferred_cut + of_shared.deferred_cut};
  return mlp;
}

ModelTable moe_table(const Options& options) {
  const LlamaShape shape = llama_shape(options, "moe");
  const MoeShape moe = moe_shape(options);
  ModelTable table =
      llama_table(shape, [&](const std::string& layer) { return experts_mlp(shape, moe, layer); });
  int64_t layer = 0;
  for (const GroupSpec& group : table.groups)
    if (std::any_of(group.parameters.begin(), group.parameters.end(),
                    [](const ParameterSpec& parameter) { return parameter.is_of_experts(); }))
      table.blocks[static_cast<size_t>(group.first_block)].expert_tokens = ExpertTokens{
          .experts = moe.experts,
          .copies = shape.sequence * moe.top_k,
          .top_k = moe.top_k,
          .width = shape.width,
          .capacity = expert_capacity(moe, shape.sequence),
          .shares = is_learned(moe.routing) ? std::vector<double>()
                                            : expert_shares(moe.routing, moe.experts, moe.top_k),
          .routing = moe.routing,
          .layer = layer++,
          .kept_of_row = 2 * static_cast<double>(shape.inner),
          .working_of_row = static_cast<double>(shape.width + 4 * shape.inner),
          .deferred_of_row = 3 * static_cast<double>(shape.inner),
          .shared_flops = 4 * static_cast<double>(shape.sequence * shape.width * moe.shared_inner),
          .needs_all_tokens = moe.capacity > 0 || moe.aux_loss > 0,
          .has_aux_loss = moe.aux_loss > 0};
  table.flops_formula = llama_flops_formula(
      "width x experts for the router, top_k x 3 width x inner for the experts that a token goes to, and "
      "3 width x shared_inner");
  return table;
}

ModelSpec moe_spec(const std::string& description, const LlamaShape& size) {
  OptionTable options = llama_options(size);
  options.insert(
      options.end(),
      {{"experts", OptionType::integer, 8, "experts in each MLP, each of width `inner`", {}, 1, 4096},
       {"top_k", OptionType::integer, 2, "experts that a token goes to", {}, 1, 4096},
       {"shared_inner",
        OptionType::integer,
        0,
        "width of an expert of all tokens; 0: none",
        {},
        0,
        kMostWidth},
       {"aux_loss",
        OptionType::number,
        0.0,
        "coefficient of the load-balancing loss of each layer (Fedus et al. 2021, Switch Transformer, eq. "
        "4), "
        "over the micro-batch of a rank; it moves gradients and is no part of the loss that is shown",
        {},
        0,
        1e3},
       {.key = "capacity",
        .type = OptionType::number,
        .default_value = 0.0,
        .description =
            "how many copies of a rank's tokens an expert takes in a micro-batch, in multiples of the "
            "mean, rounded up for each sample; more are dropped, fewer are filled up with zeros, and "
            "ranks that share experts exchange equally much; 0: as many as are sent to it, and none "
            "is dropped",
        .minimum = 0,
        .maximum = 4096,
        .is_later = true},
       {.key = "routing",
        .type = OptionType::choice,
        .default_value = "learned",
        .description = "which experts a token goes to",
        .kind = routing_kind,
        .is_later = true}});
  return {description, std::move(options), moe_table};
}

const Registration<ModelSpec> moe_entry{
    "moe", moe_spec("a mixture of experts of 170 M parameters, 66 M of them active; any other by its options",
                    {8, 512, 8, 4, 1408, 1024, 32000, true, 500000.0, 1})};
const Registration<ModelSpec> mixtral{"moe_8x7b",
                                      moe_spec("Mixtral 8x7B, 46,703 M parameters, 12,880 M of them active",
                                               {32, 4096, 32, 8, 14336, 8192, 32000, false, 1e6, 1})};

}  // namespace
}  // namespace shardmark::specs
