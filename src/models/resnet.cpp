// resnet: a stem, residual blocks, a classifier with the loss. Activations are [B, C, H, W].
//
// Note [Channels last]: tensor cores multiply along the channels, so that cuDNN's kernels for them want the
// channels of a pixel next to each other; from other strides it converts to and fro around each convolution
// (NVIDIA, Convolutional Layers User's Guide, "Tensor Layouts"). On a GPU the stem converts the images, and
// every operation after it keeps their format. Weights stay as they lie in flat memory, [out, in, kernel,
// kernel], so that layouts, checkpoints and initial values know nothing of it: a convolution takes a copy,
// which backward uses too, and its gradient is added across the formats. For ResNet-50 that is 17 copies of
// together 11 million elements (the 1x1 kernels lie alike in both formats), 0.1 ms of a step; 23 MB are held
// from forward to backward. Without tensor cores (fp32, fp64) everything stays as it is.
#include "specs/models/resnet.h"

#include <ATen/Context.h>

#include "models/batch_norm.h"
#include "models/layers.h"

namespace shardmark {
namespace {

// On the CPU only tests ask for it, in any type.
bool channels_last(const Model& model) {
  const bool tensor_cores = at::isReducedFloatingType(model.dtype()) ||
                            (model.dtype() == at::kFloat && at::globalContext().allowTF32CuDNN());
  return model.gpu_forms && (tensor_cores || model.device().is_cpu());
}

struct ConvNorm {
  const at::Tensor& weight;  // [out, in, kernel, kernel]
  int64_t stride, padding;
  BatchNorm norm;

  ConvNorm(Model& model, const specs::ConvNormSpec& spec, BatchStatistics statistics)
      : weight(model.parameter(spec.conv + ".weight")),
        stride(spec.stride),
        padding((spec.kernel - 1) / 2),
        norm(model, spec.norm, statistics) {}
  at::Tensor operator()(const at::Tensor& x) const {
    return norm(at::conv2d(x, weight.contiguous(x.suggest_memory_format()), {}, stride, padding));
  }
};

Block stem(Model& model, const specs::ResNetShape& shape, BatchStatistics statistics) {
  const ConvNorm conv(model, shape.stem, statistics);
  return {"stem", [&model, conv, pooled = shape.pooled](const at::Tensor& x, const Batch&) {
            const auto format =
                channels_last(model) ? at::MemoryFormat::ChannelsLast : x.suggest_memory_format();
            const at::Tensor y = conv(x.contiguous(format)).relu_();
            return pooled ? at::max_pool2d(y, 3, 2, 1) : y;
          }};
}

Block residual(Model& model, const specs::ResidualSpec& spec, BatchStatistics statistics) {
  std::vector<ConvNorm> branch;
  branch.reserve(spec.branch.size());
  for (const auto& conv : spec.branch) branch.emplace_back(model, conv, statistics);
  std::optional<ConvNorm> shortcut;
  if (spec.shortcut) shortcut.emplace(model, *spec.shortcut, statistics);
  return {spec.name, [branch, shortcut](const at::Tensor& x, const Batch&) {
            at::Tensor y = branch[0](x);
            for (size_t i = 1; i < branch.size(); ++i) y = branch[i](y.relu_());
            return y.add_(shortcut ? (*shortcut)(x) : x).relu_();
          }};
}

void add_resnet_blocks(Model& model, const Options& options) {
  const specs::ResNetShape shape = specs::resnet_shape(options);
  const BatchStatistics statistics = batch_statistics(options);
  model.add_block(stem(model, shape, statistics));
  for (const auto& block : shape.blocks) model.add_block(residual(model, block, statistics));
  const auto classifier = layer<Linear>(model, "fc");
  model.add_block({"head", [classifier](const at::Tensor& x, const Batch& batch) {
                     return loss_or_logits(classifier(x.mean({2, 3})), batch);
                   }});
}

const Registration<ModelEntry> registered{"resnet", {"stem, residual blocks, classifier", add_resnet_blocks}};

}  // namespace
}  // namespace shardmark
