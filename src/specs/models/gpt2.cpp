// gpt2, gpt2_medium, gpt2_large, gpt2_xl (Radford et al. 2019). Names and shapes are those of Hugging Face
// without the prefix `transformer.`, so that a safetensors file maps one to one. Projections are [in, out]
// (Hugging Face's Conv1D); addmm takes them as they are, forward and backward, as fast as [out, in]. The
// output layer is the token embedding (tied).
#include <cmath>

#include "specs/models/parameters.h"

namespace shardmark::specs::gpt2 {

namespace {

struct Gpt2Shape {
  int64_t layers, width, heads, sequence, vocabulary;
};

Gpt2Shape gpt2_shape(const Options& options) {
  const Gpt2Shape s{integer(options, "layers"), integer(options, "width"), integer(options, "heads"),
                    integer(options, "sequence"), integer(options, "vocabulary")};
  if (s.width % s.heads != 0)
    throw UsageError("gpt2: width " + std::to_string(s.width) + " is not a multiple of heads " +
                     std::to_string(s.heads) + "; a head takes width / heads channels");
  return s;
}

GroupSpec layer_group(const Gpt2Shape& s, int64_t layer) {
  const int64_t c = s.width;
  const std::string name = "h." + std::to_string(layer);
  // Two branches per layer are added to the residual stream.
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers));
  return {
      name,
      {ones(name + ".ln_1.weight", c), zeros(name + ".ln_1.bias", c),
       cut(normal(name + ".attn.c_attn.weight", {c, 3 * c}, 0.02), 1, s.heads, "heads", 3),
       cut(zeros(name + ".attn.c_attn.bias", 3 * c), 0, s.heads, "heads", 3),
       cut(normal(name + ".attn.c_proj.weight", {c, c}, residual), 0, s.heads, "heads"),
       zeros(name + ".attn.c_proj.bias", c), ones(name + ".ln_2.weight", c), zeros(name + ".ln_2.bias", c),
       cut(normal(name + ".mlp.c_fc.weight", {c, 4 * c}, 0.02), 1, 4 * c, "inner channels"),
       cut(zeros(name + ".mlp.c_fc.bias", 4 * c), 0, 4 * c, "inner channels"),
       cut(normal(name + ".mlp.c_proj.weight", {4 * c, c}, residual), 0, 4 * c, "inner channels"),
       zeros(name + ".mlp.c_proj.bias", c)},
      layer + 1,
      layer + 1};
}

ModelTable gpt2_table(const Options& options) {
  const Gpt2Shape s = gpt2_shape(options);
  const auto t = static_cast<double>(s.sequence), c = static_cast<double>(s.width);
  const auto v = static_cast<double>(s.vocabulary), heads = static_cast<double>(s.heads);
  const int64_t head = s.layers + 1;  // index of the last block
  ModelTable table;
  table.groups.push_back(
      {"root", {cut_by_words(normal("wte.weight", {s.vocabulary, s.width}, 0.02))}, 0, head});
  table.groups.push_back({"embedding", {normal("wpe.weight", {s.sequence, s.width}, 0.02)}, 0, 0});
  const int64_t stream = s.sequence * s.width;
  table.blocks.push_back({.name = "embedding",
                          .activation_elements = t * c,
                          .output_shape = {s.sequence, s.width},
                          .working_elements = t * c,
                          .regions = {{.leaves = stream}},
                          .activations_cut = {.by_token = t * c},
                          .made_at_once = (v + t) * c,
                          .made_cut = {.by_channel = v * c}});
  for (int64_t i = 0; i < s.layers; ++i) {
    table.groups.push_back(layer_group(s, i));
    // What a layer keeps, in widths: the inputs (one of them is the block's output) and outputs of the norms
    // 4, q, k and v 3, the output of attention 1, the input and output of GELU 8. What the backward of the
    // MLP needs in addition: the gradients of the block's output and of the norm 2, and of GELU's input 4
    // (that of GELU's output takes the place of the output). What a backward in two parts defers: the inputs
    // of the four matrix products 1, 1, 1, 4, and the gradients of their outputs 3, 1, 4, 1.
    table.blocks.push_back(
        {.name = table.groups.back().name,
         .forward_flops = t * (24 * c * c + 4 * t * c),
         .attention_flops = 4 * t * t * c,
         .activation_elements = t * (16 * c + heads),
         .output_shape = {s.sequence, s.width},
         .working_elements = 6 * t * c,
         .regions = {{stream, stream, 2 * stream, 6 * t * c * c}, {stream, stream, 0, 8 * t * c * c}},
         .activations_cut = {t * (12 * c + heads), t * 2 * c},
         .working_cut = {4 * t * c, t * c},
         .deferred_elements = 16 * t * c,
         .deferred_cut = {.by_channel = 12 * t * c},
         // The outputs of the norms and of GELU; that of attention is kept for attention, too.
         .product_inputs = {7 * t * c, 6 * t * c, 16 * t * c, 5 * t * c, 4 * t * c, 12 * t * c}});
  }
  table.groups.push_back({"head", {ones("ln_f.weight", s.width), zeros("ln_f.bias", s.width)}, head, head});
  // What the head keeps: the norm's output, and log-probabilities.
  table.blocks.push_back({.name = "head",
                          .forward_flops = t * 2 * c * v,
                          .activation_elements = t * (c + v),
                          .working_elements = 2 * t * c,
                          .logits = t * v,
                          .regions = {{.enters = stream, .flops = t * 2 * c * v}},
                          .activations_cut = {.by_channel = t * v},
                          .working_cut = {.by_token = t * c},
                          .deferred_elements = t * (c + v),
                          .deferred_cut = {.by_channel = t * v},
                          .targets_of_cut = s.sequence});
  table.sample = {SampleShape::Kind::tokens, {s.sequence}, s.vocabulary};
  table.flops_formula =
      "forward per token: 2 x matrix parameters (24 width^2 per layer, 2 width x vocabulary for the logits) "
      "+ 4 x layers "
      "x width x sequence for attention, counted in full (not halved for the causal mask); step: 3 x forward "
      "(Chowdhery et al. 2022, PaLM, appendix B: 6 N + 12 L C T)";
  return table;
}

ModelSpec gpt2_spec(const std::string& size, int64_t layers, int64_t width, int64_t heads) {
  return {"GPT-2 " + size + ", any other size by its options",
          {{"layers", OptionType::integer, layers, "transformer blocks", {}, 1, kMostLayers},
           {"width", OptionType::integer, width, "channels of the residual stream", {}, 1, kMostWidth},
           {"heads", OptionType::integer, heads, "attention heads; they divide the width", {}, 1, kMostWidth},
           {"sequence", OptionType::integer, 1024, "tokens per sample", {}, 1, kMostValues},
           {"vocabulary", OptionType::integer, 50257, "different tokens", {}, 2, kMostValues},
           {"dropout", OptionType::number, 0.0, "share of activations zeroed in training", {}, 0, 0.99}},
          gpt2_table};
}

const Registration<ModelSpec> gpt2{"gpt2", gpt2_spec("small, 124 M parameters", 12, 768, 12)};
const Registration<ModelSpec> gpt2_medium{"gpt2_medium", gpt2_spec("medium, 355 M parameters", 24, 1024, 16)};
const Registration<ModelSpec> gpt2_large{"gpt2_large", gpt2_spec("large, 774 M parameters", 36, 1280, 20)};
const Registration<ModelSpec> gpt2_xl{"gpt2_xl", gpt2_spec("XL, 1558 M parameters", 48, 1600, 25)};

}  // namespace
}  // namespace shardmark::specs::gpt2
