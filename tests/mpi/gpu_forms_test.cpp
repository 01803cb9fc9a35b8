// Compares the variants of models that are fast on GPUs with the plain variants, on the CPU: losses, logits
// and gradients.
// RANKS 1
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "device/device.h"
#include "models/model.h"

namespace shardmark {
namespace {

Choice resolved(const std::string& name, const Options& options) {
  return resolve({name, options}, specs::model_spec(name).options, "model");
}

at::Tensor forward(const Model& model, const Batch& batch, bool channels_last = false) {
  at::Tensor h = batch.inputs;
  for (const auto& block : model.blocks()) {
    h = block.forward(h, batch);
    const bool kept = h.dim() != 4 || h.is_contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(kept || !channels_last) << block.name;
  }
  return h;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor expected = b.detach().to(at::kDouble);
  return ((a.detach().to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

// The same parameters in both variants, with gradients in preallocated memory as strategies provide them.
struct BothForms {
  std::unique_ptr<Model> plain, fast;

  BothForms(const Choice& choice, at::ScalarType dtype)
      : plain(make_model(choice, dtype, at::kCPU)), fast(make_model(choice, dtype, at::kCPU)) {
    EXPECT_FALSE(fast->gpu_forms) << "on the CPU blocks take their plain forms";
    fast->gpu_forms = true;
    for (Model* model : {plain.get(), fast.get()}) {
      materialize(*model, 1);
      for_each_parameter(*model, [](const auto&, at::Tensor& p) { p.mutable_grad() = at::zeros_like(p); });
    }
  }

  template <class Visit>
  static void for_each_parameter(Model& model, const Visit& visit) {
    for (const auto& group : model.table().groups)
      for (const auto& spec : group.parameters) visit(spec.name, model.parameter(spec.name));
  }

  void expect_near_gradients(double tolerance) const {
    for_each_parameter(*plain, [&](const std::string& name, const at::Tensor& parameter) {
      const at::Tensor& gradient = fast->parameter(name).grad();
      EXPECT_TRUE(gradient.is_contiguous()) << name;
      EXPECT_LE(distance(gradient, parameter.grad()), tolerance) << name;
    });
  }
};

Choice small_gpt2() {
  return resolved("gpt2",
                  {{"layers", 2}, {"width", 24}, {"heads", 3}, {"sequence", 20}, {"vocabulary", 131}});
}
Choice small_llama(bool tied) {
  return resolved("llama", {{"layers", 2},
                            {"width", 24},
                            {"heads", 6},
                            {"kv_heads", 2},
                            {"inner", 40},
                            {"sequence", 20},
                            {"vocabulary", 131},
                            {"tied", tied}});
}

// Returns a batch for both models above.
Batch random_tokens() {
  at::manual_seed(3);
  return {at::randint(131, {4, 20}, at::kLong), at::randint(131, {4, 20}, at::kLong)};
}

TEST(GpuForms, OfLanguageModelsAreTheSameModel) {
  const Batch batch = random_tokens();
  for (const Choice& choice : {small_gpt2(), small_llama(true), small_llama(false)}) {
    for (const auto dtype : {at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(to_text(choice) + " " + at::toString(dtype));
      const BothForms forms(choice, dtype);
      EXPECT_LE(distance(forward(*forms.fast, {batch.inputs, {}}), forward(*forms.plain, {batch.inputs, {}})),
                1e-2);
      const at::Tensor expected = forward(*forms.plain, batch), measured = forward(*forms.fast, batch);
      EXPECT_EQ(measured.scalar_type(), at::kFloat);
      EXPECT_LE(distance(measured, expected), 2e-4);
      const at::Tensor scale = at::full({}, dtype == at::kHalf ? 1024.0 : 1.0, at::kFloat);
      expected.backward(scale);
      measured.backward(scale);
      forms.expect_near_gradients(2e-2);
    }
  }
}

// If backward is split in two parts, the first part leaves the gradient of the head to the second as well.
TEST(GpuForms, OfLanguageModelsComeInTwoParts) {
  const Batch batch = random_tokens();
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(at::toString(dtype));
    const BothForms forms(small_llama(false), dtype);
    DeferredGradients deferred;
    forms.fast->splits_backward = true;
    const at::Tensor scale = at::full({}, dtype == at::kHalf ? 1024.0 : 1.0, at::kFloat);
    forward(*forms.plain, batch).backward(scale);
    const at::Tensor loss = forward(*forms.fast, batch);
    forms.fast->deferred = &deferred;
    loss.backward(scale);
    EXPECT_EQ(forms.fast->parameter("lm_head.weight").grad().abs().max().item<float>(), 0);
    const c10::AutoGradMode no_graph(false);
    for (const auto& add : deferred) add();
    forms.expect_near_gradients(2e-2);
  }
}

// In fp32 and fp64, the GPU variant of GPT-2 is bitwise equal to the plain one. Llama's norms and keys round
// differently.
TEST(GpuForms, OfLanguageModelsAreThePlainOnesInFp32AndFp64) {
  for (const auto& [choice, rounding] : {std::pair{small_gpt2(), 0.0}, {small_llama(true), 100.0}}) {
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      const BothForms forms(choice, dtype);
      for (const auto& model : {forms.plain.get(), forms.fast.get()})
        forward(*model, random_tokens()).backward();
      forms.expect_near_gradients(rounding * (dtype == at::kFloat ? 1e-7 : 1e-16));
    }
  }
}

TEST(GpuForms, OfResNetAreTheSameModel) {
  at::manual_seed(3);
  for (const Options& options :
       {Options{{"layers", 20}, {"width", 4}, {"image", 16}},
        Options{{"layers", 20}, {"width", 4}, {"image", 15}, {"batch_norm", "sync"}},
        Options{{"layers", 18}, {"width", 4}, {"image", 16}, {"batch_norm", "frozen"}},
        Options{{"layers", 50}, {"width", 4}, {"image", 65}, {"classes", 7}}}) {
    const BothForms forms(resolved("resnet", options), at::kDouble);
    SCOPED_TRACE(to_text(Choice{"resnet", options}));
    const auto& shape = forms.plain->table().sample;
    const Batch batch{at::randn({6, shape.input[0], shape.input[1], shape.input[2]}, at::kDouble),
                      at::randint(shape.num_classes, {6}, at::kLong)};
    const at::Tensor expected = forward(*forms.plain, batch);
    const at::Tensor measured = forward(*forms.fast, batch, /*channels_last=*/true);
    EXPECT_LE(distance(measured, expected), 1e-10);
    expected.backward();
    measured.backward();
    forms.expect_near_gradients(1e-8);
    for (const auto& [name, buffer] : forms.plain->buffers())
      EXPECT_TRUE(forms.fast->buffer(name).allclose(buffer, 1e-10, 1e-10)) << name;
  }
}

// A deterministic run needs cuDNN's search of algorithms switched off, whatever is called later.
TEST(SearchOfConvolutions, HappensOnAGpuUnlessBitsAreToRepeat) {
  auto& context = at::globalContext();
  const at::Device gpu(at::kCUDA, 0);
  search_convolutions(at::kCPU);
  EXPECT_FALSE(context.benchmarkCuDNN());
  search_convolutions(gpu);
  EXPECT_TRUE(context.benchmarkCuDNN());
  context.setDeterministicCuDNN(true);
  search_convolutions(gpu);
  EXPECT_FALSE(context.benchmarkCuDNN());
  context.setDeterministicCuDNN(false);
}

}  // namespace
}  // namespace shardmark
