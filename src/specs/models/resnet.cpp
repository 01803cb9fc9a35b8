// resnet (He et al. 2015). Names are torchvision's. Shortcuts that change the shape are projections (option
// B): with 20 layers there are 272,474 parameters, whereas option A (zero padding) has 269,722. Bottlenecks
// have their stride in the 3x3 convolution (torchvision's v1.5).
#include "specs/models/resnet.h"

#include <cmath>
#include <map>

#include "specs/models/parameters.h"

namespace shardmark::specs {
namespace {

// The published networks: residual blocks per stage, channels of the first stage, pixels per side. Each stage
// doubles the channels, and each except the first halves the image.
struct Depth {
  std::vector<int64_t> blocks;
  int64_t width;
  bool bottleneck;
  int64_t image, classes;
};

const std::map<int64_t, Depth>& depths() {
  static const std::map<int64_t, Depth> all = {
      {18, {{2, 2, 2, 2}, 64, false, 32, 10}},   {34, {{3, 4, 6, 3}, 64, false, 32, 10}},
      {50, {{3, 4, 6, 3}, 64, true, 224, 1000}}, {20, {{3, 3, 3}, 16, false, 32, 10}},
      {32, {{5, 5, 5}, 16, false, 32, 10}},      {56, {{9, 9, 9}, 16, false, 32, 10}},
      {110, {{18, 18, 18}, 16, false, 32, 10}}};
  return all;
}

const Depth& depth_of(int64_t layers) {
  const auto found = depths().find(layers);
  if (found != depths().end()) return found->second;
  std::string known;
  for (const auto& [number, depth] : depths()) known += (known.empty() ? "" : ", ") + std::to_string(number);
  throw UsageError("resnet: layers " + std::to_string(layers) +
                   " is not a published depth; accepted: " + known);
}

int64_t halved(int64_t size) { return (size + 1) / 2; }

ResidualSpec residual(const std::string& name, bool bottleneck, int64_t in, int64_t width, int64_t stride,
                      int64_t size) {
  const int64_t out = bottleneck ? 4 * width : width;
  const int64_t size_out = stride == 2 ? halved(size) : size;
  const auto conv = [&](const char* i, int64_t from, int64_t to, int64_t kernel, int64_t step,
                        int64_t pixels) {
    return ConvNormSpec{name + ".conv" + i, name + ".bn" + i, from, to, kernel, step, pixels};
  };
  ResidualSpec block{name, {}, {}};
  if (bottleneck)
    block.branch = {conv("1", in, width, 1, 1, size), conv("2", width, width, 3, stride, size_out),
                    conv("3", width, out, 1, 1, size_out)};
  else
    block.branch = {conv("1", in, width, 3, stride, size_out), conv("2", width, out, 3, 1, size_out)};
  if (in != out || stride != 1)
    block.shortcut = {name + ".downsample.0", name + ".downsample.1", in, out, 1, stride, size_out};
  return block;
}

// Adds the parameters of a convolution and its norm, and the norm's statistics. `variance` is the initial
// value of the running variance.
void add_conv_norm(ModelTable& table, GroupSpec& group, const ConvNormSpec& c, double variance = 1) {
  const double fan_out = static_cast<double>(c.kernel * c.kernel * c.out);
  group.parameters.push_back(
      normal(c.conv + ".weight", {c.out, c.in, c.kernel, c.kernel}, std::sqrt(2 / fan_out)));
  group.parameters.push_back(ones(c.norm + ".weight", c.out));
  group.parameters.push_back(zeros(c.norm + ".bias", c.out));
  const auto block = std::ssize(table.blocks);  // the next block
  table.buffers.push_back({c.norm + ".running_mean", {c.out}, 0, block});
  table.buffers.push_back({c.norm + ".running_var", {c.out}, variance, block});
}

double conv_flops(const ConvNormSpec& c) {
  return 2.0 * static_cast<double>(c.kernel * c.kernel * c.in * c.out * c.size * c.size);
}
double weight_elements(const ConvNormSpec& c) {
  return static_cast<double>(c.kernel * c.kernel * c.in * c.out);
}
double output_elements(const ConvNormSpec& c) { return static_cast<double>(c.out * c.size * c.size); }

void add_block(ModelTable& table, GroupSpec group, BlockSpec block) {
  group.first_block = group.last_block = static_cast<int64_t>(table.blocks.size());
  block.name = group.name;
  table.blocks.push_back(std::move(block));
  table.groups.push_back(std::move(group));
}

void add_stem(ModelTable& table, const ResNetShape& shape) {
  GroupSpec group{"stem", {}};
  add_conv_norm(table, group, shape.stem);
  // What the stem keeps: the inputs of the norm and of the pooling, the output of the pooling and its
  // indices.
  const double out = output_elements(shape.stem);
  const int64_t size = shape.pooled ? halved(shape.stem.size) : shape.stem.size;
  const double pooled = shape.pooled ? static_cast<double>(shape.stem.out * size * size) : 0;
  add_block(table, std::move(group),
            {.name = {},
             .forward_flops = conv_flops(shape.stem),
             .activation_elements = 2 * out + pooled,
             .output_shape = {1, shape.stem.out, size, size},
             .working_elements = 2 * out,
             .indices = pooled,
             .made_at_once = weight_elements(shape.stem),
             .needs_output = !shape.pooled});
}

// Frozen statistics normalize nothing, so that every residual branch would double the variance. Dividing the
// last branch's by the number of blocks, which is close to measured statistics, keeps the outputs of a deep
// network in range.
void add_residual(ModelTable& table, const ResidualSpec& block, double last_variance) {
  GroupSpec group{block.name, {}};
  double flops = 0, elements = 0, weights = 0;
  for (const auto& conv : block.branch) {
    add_conv_norm(table, group, conv, &conv == &block.branch.back() ? last_variance : 1);
    flops += conv_flops(conv);
    weights += weight_elements(conv);
    elements += 2 * output_elements(conv);  // inputs of the norm and of what follows its ReLU
  }
  if (block.shortcut) {
    add_conv_norm(table, group, *block.shortcut);
    flops += conv_flops(*block.shortcut);
    weights += weight_elements(*block.shortcut);
    elements += output_elements(*block.shortcut);
  }
  // What the backward of the last convolution and its norm needs: the gradients of the block's output (which
  // the shortcut gets, too) and of the inputs of ReLU and norm, and the gradient of the convolution's input.
  // This holds in channels-last format (models/resnet.cpp); otherwise oneDNN and cuDNN may hold reordered
  // copies.
  const ConvNormSpec& last = block.branch.back();
  const double out = output_elements(last), given = output_elements(block.branch[block.branch.size() - 2]);
  add_block(table, std::move(group),
            {.name = {},
             .forward_flops = flops,
             .activation_elements = elements,
             .output_shape = {1, last.out, last.size, last.size},
             .working_elements = 3 * out + given,
             .made_at_once = weights,
             .needs_output = true});
}

// What each synchronized norm sums over ranks: in forward sums, sums of squares and counts; in backward the
// gradient and its product with the values (models/batch_norm.cpp, Note [Statistics of all ranks]).
void add_sums_over_ranks(BlockSpec& block, const ConvNormSpec& conv) {
  block.forward_calls.push_back({.numel = 2 * conv.out + 1});
  block.backward_calls.insert(block.backward_calls.begin(), {.numel = 2 * conv.out});
}

void add_sums_over_ranks(ModelTable& table, const ResNetShape& shape) {
  auto block = table.blocks.begin();
  add_sums_over_ranks(*block, shape.stem);
  for (const ResidualSpec& residual : shape.blocks) {
    ++block;
    for (const ConvNormSpec& conv : residual.branch) add_sums_over_ranks(*block, conv);
    if (residual.shortcut) add_sums_over_ranks(*block, *residual.shortcut);
  }
}

ModelTable resnet_table(const Options& options) {
  const ResNetShape shape = resnet_shape(options);
  const bool frozen = options.at("batch_norm") == "frozen";
  ModelTable table;
  add_stem(table, shape);
  for (const auto& block : shape.blocks)
    add_residual(table, block, frozen ? static_cast<double>(shape.blocks.size()) : 1);
  table.has_local_norms = options.at("batch_norm") == "local";
  if (options.at("batch_norm") == "sync") add_sums_over_ranks(table, shape);
  const auto in = static_cast<double>(shape.features), out = static_cast<double>(shape.classes);
  GroupSpec head{"head",
                 {uniform("fc.weight", {shape.classes, shape.features}, 1 / std::sqrt(in)),
                  zeros("fc.bias", shape.classes)}};
  add_block(table, std::move(head),
            {.name = {},
             .forward_flops = 2 * in * out,
             .activation_elements = in + out,
             .working_elements = in,
             .logits = out,
             .deferred_elements = in + out});
  table.sample = {SampleShape::Kind::image, {3, shape.image, shape.image}, shape.classes};
  table.flops_formula =
      "forward: 2 x kernel^2 x in x out x output pixels per convolution, 2 x in x out for the classifier; "
      "step: 3 x forward "
      "(He et al. 2015 count multiply-adds: half of it)";
  return table;
}

int64_t given_or(const Options& options, const char* key, int64_t usual) {
  const int64_t value = integer(options, key);
  return value == 0 ? usual : value;
}

}  // namespace

ResNetShape resnet_shape(const Options& options) {
  const Depth& depth = depth_of(integer(options, "layers"));
  ResNetShape shape{};
  shape.image = given_or(options, "image", depth.image);
  shape.classes = given_or(options, "classes", depth.classes);
  int64_t width = given_or(options, "width", depth.width), channels = width, size = shape.image;
  shape.pooled = shape.image >= 64;
  if (shape.pooled) {
    shape.stem = {"conv1", "bn1", 3, width, 7, 2, halved(size)};
    size = halved(halved(size));
  } else {
    shape.stem = {"conv1", "bn1", 3, width, 3, 1, size};
  }
  for (size_t stage = 0; stage < depth.blocks.size(); ++stage, width *= 2) {
    for (int64_t i = 0; i < depth.blocks[stage]; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      shape.blocks.push_back(residual(name, depth.bottleneck, channels, width, stride, size));
      channels = shape.blocks.back().branch.back().out;
      size = shape.blocks.back().branch.back().size;
    }
  }
  shape.features = channels;
  return shape;
}

namespace {

const Registration<ModelSpec> resnet_entry{
    "resnet",
    {"residual network: CIFAR form below 64 pixels (3x3 stem), ImageNet form from there (7x7 stem, pooling)",
     {{"layers", OptionType::integer, 18, "18, 34 or 50, or CIFAR's 20, 32, 56 or 110", {}, 18, 110},
      {"width",
       OptionType::integer,
       0,
       "channels of the first stage; 0: as published (64 or 16)",
       {},
       0,
       kMostWidth / 64},
      {"classes",
       OptionType::integer,
       0,
       "of the target; 0: as published (10, layers 50: 1000)",
       {},
       0,
       kMostValues},
      {"image",
       OptionType::integer,
       0,
       "pixels per side; 0: as published (32, layers 50: 224)",
       {},
       0,
       16384},
      {"batch_norm",
       OptionType::text,
       "local",
       "statistics of a rank's micro-batch, of all ranks', or constant",
       {"local", "sync", "frozen"}}},
     resnet_table}};

}  // namespace
}  // namespace shardmark::specs
