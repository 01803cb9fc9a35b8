// mlp: linear layers with GELU between them, and cross-entropy at the end. It is the smallest model, for
// tests and for traffic without much computation.
#include <cmath>

#include "specs/models/parameters.h"

namespace shardmark::specs::mlp {
namespace {

// Weights are [out, in]. They are initialized as in PyTorch's Linear, uniformly within 1 / sqrt(in), and
// biases with zeros. Tensor-parallel ranks shard layers alternately by their outputs and by their inputs. If
// the last layer is sharded by outputs, each rank has a part of the classes.
ModelTable mlp_table(const Options& options) {
  const int64_t layers = integer(options, "layers");
  ModelTable table;
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t in = integer(options, i == 0 ? "features" : "width");
    const int64_t out = integer(options, i == layers - 1 ? "classes" : "width");
    const bool is_last = i == layers - 1, by_outputs = i % 2 == 0;
    const std::string name = "layers." + std::to_string(i);
    ParameterSpec weight = uniform(name + ".weight", {out, in}, 1 / std::sqrt(static_cast<double>(in)));
    ParameterSpec bias = zeros(name + ".bias", out);
    if (by_outputs) {
      weight = cut(std::move(weight), 0, is_last ? 0 : out, "channels of the hidden layers");
      bias = cut(std::move(bias), 0, is_last ? 0 : out, "channels of the hidden layers");
    } else {
      weight = cut(std::move(weight), 1, in, "channels of the hidden layers");
    }
    table.groups.push_back({name, {std::move(weight), std::move(bias)}, i, i});
    // What a layer keeps: the input and output of GELU, or the last layer's log-probabilities. Backward needs
    // the gradients of both and of the layer's input, which the first layer has not; it frees that of the
    // output before it computes that of the weight. The gradient of a weight needs the layer's input, which
    // for the first layer is the sample itself, and the gradient of GELU's input.
    const auto width = static_cast<double>(out);
    BlockSpec block{.name = name,
                    .forward_flops = 2.0 * static_cast<double>(in * out),
                    .activation_elements = is_last ? width : 2 * width,
                    .output_shape = is_last ? std::vector<int64_t>{} : std::vector<int64_t>{1, out},
                    .working_elements = is_last ? 0 : (i == 0 ? 2 : 3) * width,
                    .logits = is_last ? width : 0,
                    .freed_elements = is_last || i > 0 ? 0 : width,
                    .deferred_elements = width + (i == 0 ? 0 : static_cast<double>(in))};
    block.regions = {by_outputs ? Region{.enters = i == 0 ? 0 : in, .flops = block.forward_flops}
                                : Region{.leaves = out}};
    if (by_outputs) {
      block.activations_cut.by_channel = block.activation_elements;
      block.working_cut.by_channel = block.working_elements;
      block.deferred_cut.by_channel = width;
      block.is_output_cut = !is_last;
      block.targets_of_cut = is_last ? 1 : 0;
    } else {
      block.deferred_cut.by_channel = static_cast<double>(in);
    }
    table.blocks.push_back(std::move(block));
  }
  table.sample = {SampleShape::Kind::rows, {integer(options, "features")}, integer(options, "classes")};
  table.flops_formula = "forward: 2 x in x out per layer; step: 3 x forward";
  return table;
}

const Registration<ModelSpec> registered{
    "mlp",
    {"perceptron: linear layers with GELU, cross entropy",
     {{"features", OptionType::integer, 64, "values per sample", {}, 1, kMostValues},
      {"width", OptionType::integer, 256, "of the hidden layers", {}, 1, kMostWidth},
      {"layers", OptionType::integer, 4, "linear layers, the last one included", {}, 1, kMostLayers},
      {"classes", OptionType::integer, 10, "of the target", {}, 2, kMostValues}},
     mlp_table}};

}  // namespace
}  // namespace shardmark::specs::mlp
