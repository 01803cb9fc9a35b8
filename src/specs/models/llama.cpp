// llama, llama_1b, llama_3b, llama_8b, llama_70b (Grattafiori et al. 2024, "The Llama 3 Herd of Models"; the
// sizes are those of Llama 3.1 and 3.2). Names and shapes are those of Hugging Face's LlamaForCausalLM, so
// that its safetensors files map one to one: every projection is [out, in] and has no bias.
#include "specs/models/llama.h"

#include <fmt/format.h>

#include <cmath>

#include "specs/models/parameters.h"

namespace shardmark::specs {

LlamaShape llama_shape(const Options& options, const std::string& model) {
  const LlamaShape s{integer(options, "layers"),
                     integer(options, "width"),
                     integer(options, "heads"),
                     integer(options, "kv_heads"),
                     integer(options, "inner"),
                     integer(options, "sequence"),
                     integer(options, "vocabulary"),
                     options.at("tied").get<bool>(),
                     options.at("rope_theta").get<double>(),
                     options.at("rope_factor").get<double>()};
  if (s.width % s.heads != 0)
    throw UsageError(
        fmt::format("{}: width {} is not a multiple of heads {}; a head takes width / heads channels", model,
                    s.width, s.heads));
  if (s.heads % s.kv_heads != 0)
    throw UsageError(
        fmt::format("{}: heads {} is not a multiple of kv_heads {}; heads / kv_heads queries share a key",
                    model, s.heads, s.kv_heads));
  if (s.head_width() % 2 != 0)
    throw UsageError(fmt::format(
        "{}: width {} / heads {} = {} is odd; the rotary embedding turns the channels of a head in pairs",
        model, s.width, s.heads, s.head_width()));
  return s;
}

double llama_residual(const LlamaShape& shape) {
  return 0.02 / std::sqrt(2.0 * static_cast<double>(shape.layers));
}

LlamaMlp swiglu_mlp(const LlamaShape& s, const std::string& name, int64_t inner) {
  const auto c = static_cast<double>(s.width), i = static_cast<double>(inner);
  constexpr const char* kInner = "inner channels";
  return {.parameters = {cut(normal(name + ".gate_proj.weight", {inner, s.width}, 0.02), 0, inner, kInner),
                         cut(normal(name + ".up_proj.weight", {inner, s.width}, 0.02), 0, inner, kInner),
                         cut(normal(name + ".down_proj.weight", {s.width, inner}, llama_residual(s)), 1,
                             inner, kInner)},
          .forward_flops = 6 * c * i,
          .first_flops = 4 * c * i,
          .activation_elements = 3 * i,  // gate, up and their product
          .working_elements = 3 * i,
          .deferred_elements = 3 * i,  // the input of the last product, the gradients of gate and up
          // Its deferred elements include the first product's input and the gradient of its output.
          .product_inputs = {c + i, c + i, 2 * c + 3 * i, i, i, 3 * i}};
}

namespace {

GroupSpec layer_group(const LlamaShape& s, const std::string& name, int64_t block, const LlamaMlp& mlp) {
  const int64_t c = s.width, kv = s.kv_heads * s.head_width();
  GroupSpec group{
      name,
      {ones(name + ".input_layernorm.weight", c),
       cut(normal(name + ".self_attn.q_proj.weight", {c, c}, 0.02), 0, s.heads, "heads"),
       cut(normal(name + ".self_attn.k_proj.weight", {kv, c}, 0.02), 0, s.kv_heads, "kv_heads"),
       cut(normal(name + ".self_attn.v_proj.weight", {kv, c}, 0.02), 0, s.kv_heads, "kv_heads"),
       cut(normal(name + ".self_attn.o_proj.weight", {c, c}, llama_residual(s)), 1, s.heads, "heads"),
       ones(name + ".post_attention_layernorm.weight", c)},
      block,
      block};
  group.parameters.insert(group.parameters.end(), mlp.parameters.begin(), mlp.parameters.end());
  return group;
}

BlockSpec layer_block(const LlamaShape& s, const std::string& name, const LlamaMlp& mlp) {
  const auto t = static_cast<double>(s.sequence), c = static_cast<double>(s.width);
  const auto kv = static_cast<double>(s.kv_heads * s.head_width()), heads = static_cast<double>(s.heads);
  // What a layer keeps, in widths: the inputs (one of them is the block's output) and outputs of the norms 4,
  // q and the output of attention 2. In addition k and v; and per token the two scales of the norms and a
  // log-sum-exp for each head. What a backward in two parts defers, for attention's products and the first
  // and last of the MLP: their inputs 3, the gradients of their outputs 3, and the gradients of k and v.
  const double attention_flops = 4 * t * t * c;
  const int64_t stream = s.sequence * s.width;
  std::vector<Region> regions = {
      {stream, stream, 2 * s.sequence * s.kv_heads * s.head_width(), t * (2 * c * c + 4 * c * kv)},
      {stream, stream, 0, t * mlp.first_flops}};
  if (mlp.num_logits > 0) {  // they enter after the tokens, and experts keep both
    regions.back().leaves = 0;
    regions.push_back({s.sequence * mlp.num_logits, stream});
    regions[1].keeps_input = regions[2].keeps_input = true;
  }
  const double cut_activations = mlp.activation_elements - mlp.uncut_activations;
  // Attention's are the output of the norm and its own, which it keeps itself.
  const ProductInputs& of_mlp = mlp.product_inputs;
  return {.name = name,
          .forward_flops = t * (4 * c * c + 4 * c * kv + mlp.forward_flops) + attention_flops,
          .attention_flops = attention_flops,
          .activation_elements = t * (6 * c + 2 * kv + mlp.activation_elements + heads + 2),
          .output_shape = {s.sequence, s.width},
          .working_elements = t * (2 * c + mlp.working_elements),
          .indices = t * mlp.indices,
          .regions = std::move(regions),
          .activations_cut = {t * (2 * c + 2 * kv + cut_activations + heads), t * (2 * c + 2)},
          .working_cut = {t * (mlp.working_elements - mlp.uncut_working), t * c},
          .deferred_elements = t * (6 * c + 2 * kv + mlp.deferred_elements),
          .deferred_cut = {.by_channel = t * (2 * c + 2 * kv + mlp.deferred_elements - mlp.uncut_deferred)},
          .product_inputs = {t * (2 * c + of_mlp.elements), t * (c + of_mlp.alone),
                             t * (4 * c + 2 * kv + of_mlp.deferred), t * (c + of_mlp.elements_cut),
                             t * of_mlp.alone_cut, t * (2 * c + 2 * kv + of_mlp.deferred_cut)}};
}

}  // namespace

// With a tied head, the embedding is in the root group, and its lookup is part of the first layer's block.
// Otherwise the embedding is a block with a group of its own.
ModelTable llama_table(const LlamaShape& s, const std::function<LlamaMlp(const std::string&)>& mlp_of) {
  const auto t = static_cast<double>(s.sequence), c = static_cast<double>(s.width);
  const auto v = static_cast<double>(s.vocabulary);
  const int64_t first = s.tied ? 0 : 1, head = first + s.layers;  // blocks: the first layer, and the head
  const Region embedding{.leaves = s.sequence * s.width};
  ModelTable table;
  table.groups.push_back({s.tied ? "root" : "embedding",
                          {cut_by_words(normal("model.embed_tokens.weight", {s.vocabulary, s.width}, 0.02))},
                          0,
                          s.tied ? head : 0});
  if (!s.tied)
    table.blocks.push_back({.name = "embedding",
                            .activation_elements = t * c,
                            .output_shape = {s.sequence, s.width},
                            .regions = {embedding},
                            .activations_cut = {.by_token = t * c},
                            .made_at_once = v * c,
                            .made_cut = {.by_channel = v * c}});
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    const LlamaMlp mlp = mlp_of(name);
    table.groups.push_back(layer_group(s, name, first + i, mlp));
    table.blocks.push_back(layer_block(s, name, mlp));
  }
  if (s.tied) {
    BlockSpec& first_layer = table.blocks.front();
    first_layer.activation_elements += t * c;
    first_layer.activations_cut.by_token += t * c;
    first_layer.made_at_once = first_layer.made_cut.by_channel = v * c;
    first_layer.regions.insert(first_layer.regions.begin(), embedding);
  }
  GroupSpec last{"head", {ones("model.norm.weight", s.width)}, head, head};
  if (!s.tied)
    last.parameters.push_back(cut_by_words(normal("lm_head.weight", {s.vocabulary, s.width}, 0.02)));
  table.groups.push_back(std::move(last));
  // What the head keeps: the norm's output and scale, and log-probabilities.
  table.blocks.push_back({.name = "head",
                          .forward_flops = t * 2 * c * v,
                          .activation_elements = t * (c + 1 + v),
                          .working_elements = 2 * t * c,
                          .logits = t * v,
                          .regions = {{.enters = s.sequence * s.width, .flops = t * 2 * c * v}},
                          .activations_cut = {t * v, t},
                          .working_cut = {.by_token = t * c},
                          .deferred_elements = t * (c + v),
                          .deferred_cut = {.by_channel = t * v},
                          .targets_of_cut = s.sequence});
  table.sample = {SampleShape::Kind::tokens, {s.sequence}, s.vocabulary};
  return table;
}

std::string llama_flops_formula(const std::string& mlp) {
  return "forward per token: 2 x matrix parameters (per layer 2 width^2 for queries and output, 2 width x "
         "kv_heads x head width for keys and values, " +
         mlp +
         " for the MLP; width x vocabulary for the logits) + 4 x layers x width x sequence for attention, "
         "counted in full (not halved for the causal mask); step: 3 x forward (Chowdhery et al. 2022, PaLM, "
         "appendix B: 6 N + 12 L C T; grouped queries leave attention's products as they are)";
}

OptionTable llama_options(const LlamaShape& size) {
  return {
      {"layers", OptionType::integer, size.layers, "transformer blocks", {}, 1, kMostLayers},
      {"width", OptionType::integer, size.width, "channels of the residual stream", {}, 1, kMostWidth},
      {"heads",
       OptionType::integer,
       size.heads,
       "heads of queries; they divide the width",
       {},
       1,
       kMostWidth},
      {"kv_heads",
       OptionType::integer,
       size.kv_heads,
       "heads of keys and values; they divide the heads",
       {},
       1,
       kMostWidth},
      {"inner", OptionType::integer, size.inner, "channels inside the MLP", {}, 1, kMostWidth},
      {"sequence", OptionType::integer, size.sequence, "tokens per sample", {}, 1, kMostValues},
      {"vocabulary", OptionType::integer, size.vocabulary, "different tokens", {}, 2, kMostValues},
      {"tied", OptionType::boolean, size.tied, "whether the output layer is the token embedding"},
      {"rope_theta", OptionType::number, size.rope_theta, "base of the rotary frequencies", {}, 1, 1e12},
      {"rope_factor",
       OptionType::number,
       size.rope_factor,
       "Llama 3's scaling of rotary frequencies for contexts longer than 8192 (rope_type llama3); 1: none",
       {},
       1,
       1e6}};
}

namespace {

// What all sizes of Llama 3 have in common: 8 heads of keys and values, 8192 tokens, a vocabulary of 128,256
// and theta 500,000.
ModelSpec llama_spec(const std::string& description, int64_t layers, int64_t width, int64_t heads,
                     int64_t inner, bool tied, double rope_factor) {
  return {
      description, llama_options({layers, width, heads, 8, inner, 8192, 128256, tied, 500000.0, rope_factor}),
      [](const Options& options) {
        const LlamaShape shape = llama_shape(options);
        ModelTable table = llama_table(
            shape, [&](const std::string& layer) { return swiglu_mlp(shape, layer + ".mlp", shape.inner); });
        table.flops_formula = llama_flops_formula("3 width x inner");
        return table;
      }};
}

ModelSpec llama_1b_spec(const std::string& description) {
  return llama_spec(description, 16, 2048, 32, 8192, true, 32);
}

const Registration<ModelSpec> llama_entry{
    "llama", llama_1b_spec("Llama 3.2 1B, 1236 M parameters; any other Llama by its options")};
const Registration<ModelSpec> llama_1b{"llama_1b", llama_1b_spec("Llama 3.2 1B, 1236 M parameters")};
const Registration<ModelSpec> llama_3b{
    "llama_3b", llama_spec("Llama 3.2 3B, 3213 M parameters", 28, 3072, 24, 8192, true, 32)};
const Registration<ModelSpec> llama_8b{
    "llama_8b", llama_spec("Llama 3.1 8B, 8030 M parameters", 32, 4096, 32, 14336, false, 8)};
const Registration<ModelSpec> llama_70b{
    "llama_70b", llama_spec("Llama 3.1 70B, 70,554 M parameters", 80, 8192, 64, 28672, false, 8)};

}  // namespace
}  // namespace shardmark::specs
