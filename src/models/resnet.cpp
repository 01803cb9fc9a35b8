// resnet: a stem, residual blocks, and a classifier with the loss. Activations are [B, C, H, W].
//
// Note [Channels last]: tensor cores multiply along the channels, and so do oneDNN's kernels on a CPU, so
// that both want the channels of a pixel next to each other. If the strides are different, they convert back
// and forth around each convolution (NVIDIA, Convolutional Layers User's Guide, "Tensor Layouts"). The stem
// converts the images, and every operation after it keeps their format. Weights remain [out, in, kernel,
// kernel] in flat memory, so that layouts, checkpoints and initial values know nothing of the format: a
// convolution makes a copy in forward and another one in backward, and holds none in between; the gradient is
// added across the formats. For ResNet-50 these are twice 17 copies of together 11 million elements (1x1
// kernels are the same in both formats), which take 0.2 ms of a step on an H100 by their bytes. On a GPU,
// fp32 without TF32 and fp64 keep the default format, because they do not use tensor cores; on a CPU, all
// types but fp32 do.
#include "specs/models/resnet.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/batch_norm.h"
#include "models/layers.h"

namespace shardmark::resnet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// oneDNN in torch 2.11 writes beyond its memory in the backward of the weight of a 1x1 convolution with
// stride 2 in channels-last format, if it has fewer than 8 input channels (jit_1x1:avx2, on CPUs without
// AVX-512).
bool damages_memory(const specs::ResidualSpec& block) {
  return block.shortcut && block.shortcut->stride > 1 && block.shortcut->in < 8;
}

// Whether activations are in channels-last format. Types other than float on a CPU are used in tests only.
bool channels_last(const Model& model, bool is_damaging) {
  const bool is_float = model.dtype() == at::kFloat;
  if (model.device().is_cpu()) return is_float ? !is_damaging : model.gpu_forms;
  const bool tensor_cores =
      at::isReducedFloatingType(model.dtype()) || (is_float && at::globalContext().allowTF32CuDNN());
  return model.gpu_forms && tensor_cores;
}

// x is [B, in, H, W], weight is [out, in, kernel, kernel]. Both have the format already, or are copied to it.
struct Convolution : torch::autograd::Function<Convolution> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            int64_t stride, int64_t padding, at::MemoryFormat format) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["stride"] = stride;
    ctx->saved_data["padding"] = padding;
    ctx->saved_data["format"] = static_cast<int64_t>(format);
    return at::conv2d(x.contiguous(format), weight.contiguous(format), {}, stride, padding);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const int64_t stride = ctx->saved_data["stride"].toInt(), padding = ctx->saved_data["padding"].toInt();
    const auto format = static_cast<at::MemoryFormat>(ctx->saved_data["format"].toInt());
    const auto [dx, dweight, none] =
        at::convolution_backward(outputs[0], x.contiguous(format), weight.contiguous(format), {},
                                 {stride, stride}, {padding, padding}, {1, 1}, /*transposed=*/false, {0, 0},
                                 /*groups=*/1, {ctx->needs_input_grad(0), ctx->needs_input_grad(1), false});
    return {dx, dweight, {}, {}, {}};
  }
};

struct ConvNorm {
  const at::Tensor& weight;  // [out, in, kernel, kernel]
  int64_t stride, padding;
  BatchNorm norm;

  ConvNorm(Model& model, const specs::ConvNormSpec& spec, BatchStatistics statistics)
      : weight(model.parameter(spec.conv + ".weight")),
        stride(spec.stride),
        padding((spec.kernel - 1) / 2),
        norm(model, spec.norm, statistics) {}
  at::Tensor convolution(const at::Tensor& x, at::MemoryFormat format) const {
    return Convolution::apply(x, weight, stride, padding, format);
  }
  at::Tensor operator()(const at::Tensor& x) const { return norm(convolution(x, x.suggest_memory_format())); }
  // As BatchNorm::relu().
  at::Tensor relu(const at::Tensor& x, const at::Tensor& added = {}) const {
    return norm.relu(convolution(x, x.suggest_memory_format()), added);
  }
};

Block stem(Model& model, const specs::ResNetShape& shape, BatchStatistics statistics) {
  const ConvNorm conv(model, shape.stem, statistics);
  const bool is_damaging = std::any_of(shape.blocks.begin(), shape.blocks.end(), damages_memory);
  return {"stem", [&model, conv, is_damaging, pooled = shape.pooled](const at::Tensor& x, const Batch&) {
            const auto format = channels_last(model, is_damaging) ? at::MemoryFormat::ChannelsLast
                                                                  : x.suggest_memory_format();
            const at::Tensor y = conv.norm.relu(conv.convolution(x, format));
            return pooled ? at::max_pool2d(y, 3, 2, 1) : y;
          }};
}

Block residual(Model& model, const specs::ResidualSpec& spec, BatchStatistics statistics) {
  std::vector<ConvNorm> branch;
  branch.reserve(spec.branch.size());
  for (const auto& conv : spec.branch) branch.emplace_back(model, conv, statistics);
  std::optional<ConvNorm> shortcut;
  if (spec.shortcut) shortcut.emplace(model, *spec.shortcut, statistics);
  return {spec.name, [&model, branch, shortcut](const at::Tensor& x, const Batch&) {
            // On a GPU, too, a stage of a pipeline receives its input in the default format.
            const at::Tensor in = model.gpu_forms && channels_last(model, /*is_damaging=*/false)
                                      ? x.contiguous(at::MemoryFormat::ChannelsLast)
                                      : x;
            at::Tensor y = in;
            for (size_t i = 0; i + 1 < branch.size(); ++i) y = branch[i].relu(y);
            // The shortcut comes before the last convolution, so that backward has freed the gradient of that
            // convolution's output when it reaches the shortcut.
            return branch.back().relu(y, shortcut ? (*shortcut)(in) : in);
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
}  // namespace shardmark::resnet
