// Compares models with their tables: which block uses which parameter, gradients block by block, FLOPs,
// memory for backward, and initial values.
// RANKS 1
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "device/meter.h"
#include "models/initial.h"
#include "models/model.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

const std::vector<Choice>& small_models() {
  static const std::vector<Choice> all = {
      resolved_model("mlp(features=7, width=11, layers=3, classes=5)"),
      resolved_model("mlp(layers=1)"),
      resolved_model("gpt2(layers=2, width=12, heads=3, sequence=10, vocabulary=31)"),
      resolved_model(
          "llama(layers=2, width=24, heads=6, kv_heads=2, inner=40, sequence=10, vocabulary=31, tied=true)"),
      resolved_model(
          "llama(layers=2, width=24, heads=6, kv_heads=2, inner=40, sequence=10, vocabulary=31, tied=false)"),
      resolved_model("resnet(layers=20, width=4, image=16)"),
      resolved_model("resnet(layers=20, width=4, image=15, batch_norm=sync)"),
      resolved_model("resnet(layers=18, width=4, image=16, batch_norm=frozen)"),
      resolved_model("resnet(layers=50, width=4, image=65, classes=7)"),
      resolved_model("moe(layers=2, width=24, heads=6, kv_heads=2, inner=20, sequence=10, vocabulary=31, "
                     "experts=3, aux_loss=0.1)"),
      resolved_model("moe(layers=2, width=24, heads=6, kv_heads=2, inner=20, sequence=10, vocabulary=31, "
                     "experts=5, top_k=3, shared_inner=12, tied=false)")};
  return all;
}

std::unique_ptr<Model> built(const Choice& choice, at::ScalarType dtype = at::kDouble) {
  auto model = make_model(choice, dtype, at::kCPU);
  materialize(*model, 1);
  return model;
}

Batch random_batch(const Model& model, int64_t samples) {
  at::manual_seed(3);
  const specs::SampleShape& shape = model.table().sample;
  std::vector<int64_t> sizes = shape.input;
  sizes.insert(sizes.begin(), samples);
  if (shape.kind == specs::SampleShape::Kind::tokens)
    return {at::randint(shape.num_classes, sizes, at::kLong),
            at::randint(shape.num_classes, sizes, at::kLong)};
  return {at::randn(sizes, model.dtype()), at::randint(shape.num_classes, {samples}, at::kLong)};
}

at::Tensor whole_forward(const Model& model, const Batch& batch) {
  at::Tensor h = batch.inputs;
  for (const auto& block : model.blocks()) h = block.forward(h, batch);
  return h;
}

// Runs the loop over blocks that strategies use, without a strategy. Calls after_backward(b) when the
// gradients of block b are complete.
void blockwise(const Model& model, const Batch& batch,
               const std::function<void(size_t)>& after_backward = {}) {
  const auto& blocks = model.blocks();
  std::vector<at::Tensor> in(blocks.size()), out(blocks.size());
  at::Tensor h = batch.inputs;
  for (size_t b = 0; b < blocks.size(); ++b) {
    in[b] = h.detach().set_requires_grad(b > 0);
    h = out[b] = blocks[b].forward(in[b], batch);
  }
  at::Tensor g;
  for (size_t b = blocks.size(); b-- > 0;) {
    out[b].backward(g);
    g = in[b].grad();
    if (after_backward) after_backward(b);
  }
}

template <class Visit>
void for_each_parameter(Model& model, Visit&& visit) {
  for (const auto& group : model.table().groups)
    for (const auto& spec : group.parameters) visit(group, spec, model.parameter(spec.name));
}

TEST(Models, StartOnTheMetaDeviceInTheShapesOfTheirTables) {
  for (const auto& choice : small_models()) {
    const auto model = make_model(choice, at::kFloat, at::kCPU);
    for_each_parameter(*model, [](const auto&, const specs::ParameterSpec& spec, const at::Tensor& value) {
      EXPECT_TRUE(value.is_meta()) << spec.name;
      EXPECT_EQ(value.sizes(), at::IntArrayRef(spec.shape)) << spec.name;
    });
    for (const auto& spec : model->table().buffers) EXPECT_EQ(model->buffer(spec.name).device(), at::kCPU);
  }
}

// A group's gradient is reduced after the backward of its first block, and its memory is freed after its last
// use. A parameter that another block uses, or that no block uses, would break every strategy.
TEST(Models, BlocksUseTheParametersThatTheTableSays) {
  for (const auto& choice : small_models()) {
    const auto model = built(choice);
    std::set<std::string> complete;
    blockwise(*model, random_batch(*model, 3), [&](size_t b) {
      const auto block = static_cast<int64_t>(b);
      for_each_parameter(*model, [&](const auto& group, const auto& spec, at::Tensor& parameter) {
        const at::Tensor& gradient = parameter.grad();
        const bool used = gradient.defined() && gradient.count_nonzero().template item<int64_t>() > 0;
        const bool ends = block == group.first_block || block == group.last_block;
        const bool inside = group.first_block <= block && block <= group.last_block;
        EXPECT_TRUE(ends ? used : inside || !used)
            << to_text(choice) << ": " << spec.name << " in block " << b;
        parameter.mutable_grad().reset();
      });
    });
  }
}

TEST(Models, BlockLoopGivesTheGradientsOfAWholeBackwardBitByBit) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const auto& choice : small_models()) {
      const auto one = built(choice, dtype), other = built(choice, dtype);
      const Batch batch = random_batch(*one, 3);
      whole_forward(*one, batch).backward();
      blockwise(*other, batch);
      for_each_parameter(*one, [&](const auto&, const auto& spec, const at::Tensor& parameter) {
        EXPECT_TRUE(at::equal(parameter.grad(), other->parameter(spec.name).grad()))
            << to_text(choice) << ": " << spec.name;
      });
      for (const auto& [name, buffer] : one->buffers())
        EXPECT_TRUE(at::equal(buffer, other->buffer(name))) << name;
    }
  }
}

// Counts the FLOPs of all matrix products and convolutions that ATen executes on this thread, from their
// shapes. A multiply-add counts as 2. Only attention multiplies two batches of matrices.
struct Flops {
  double all = 0, attention = 0;
};
thread_local Flops counted;

std::unique_ptr<at::ObserverContext> count_flops(const at::RecordFunction& record) {
  const std::string_view name = record.name();
  const auto size = [&](size_t input, int64_t dim) {
    return static_cast<double>(record.inputs()[input].toTensor().size(dim));
  };
  if (name == "aten::mm" || name == "aten::addmm") {
    const size_t a = name == "aten::mm" ? 0 : 1;
    counted.all += 2 * size(a, 0) * size(a, 1) * size(a + 1, 1);
  } else if (name == "aten::bmm") {
    const double flops = 2 * size(0, 0) * size(0, 1) * size(0, 2) * size(1, 2);
    counted.all += flops, counted.attention += flops;
  } else if (name == "aten::convolution") {
    const double stride = static_cast<double>(record.inputs()[3].toIntVector()[0]);
    const double padding = static_cast<double>(record.inputs()[4].toIntVector()[0]);
    const double pixels = std::floor((size(0, 2) + 2 * padding - size(1, 2)) / stride) + 1;
    counted.all += 2 * size(0, 0) * pixels * pixels * size(1, 0) * size(1, 1) * size(1, 2) * size(1, 3);
  }
  return nullptr;
}

class FlopCounter {
 public:
  FlopCounter()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(count_flops).needsInputs(true))) {
    at::globalContext().setSDPUseFlash(
        false);  // computes attention as two batched products, which can be counted
  }
  ~FlopCounter() {
    at::removeCallback(handle_);
    at::globalContext().setSDPUseFlash(true);
  }
  Flops take() { return std::exchange(counted, {}); }

 private:
  at::CallbackHandle handle_;
};

TEST(Models, DoTheArithmeticThatTheTableSays) {
  for (const auto& choice : small_models()) {
    const auto model = built(choice);
    const Batch batch = random_batch(*model, 3);
    const c10::NoGradGuard no_grad;
    FlopCounter counter;
    at::Tensor h = batch.inputs;
    for (size_t b = 0; b < model->blocks().size(); ++b) {
      h = model->blocks()[b].forward(h, batch);
      const Flops flops = counter.take();
      const specs::BlockSpec& block = model->table().blocks[b];
      EXPECT_EQ(flops.all, 3 * block.forward_flops) << to_text(choice) << " block " << b;
      EXPECT_EQ(flops.attention, 3 * block.attention_flops) << to_text(choice) << " block " << b;
    }
  }
}

// The rule that backward costs twice forward is exact if every product has two gradients.
TEST(Models, ATransformersStepDoesThreeTimesTheArithmeticOfItsForward) {
  for (const auto& choice : small_models()) {
    if (specs::model_spec(choice.name).table(choice.options).sample.kind != specs::SampleShape::Kind::tokens)
      continue;
    const auto model = built(choice);
    FlopCounter counter;
    whole_forward(*model, random_batch(*model, 3)).backward();
    EXPECT_EQ(counter.take().all, 3 * model->table().step_flops()) << to_text(choice);
  }
}

TEST(Models, KeepTheActivationsThatTheTableEstimates) {
  for (const auto& choice :
       {resolved_model("mlp(features=100, width=200)"),
        resolved_model("gpt2(layers=2, width=64, heads=4, sequence=64, vocabulary=300)"),
        resolved_model("llama(layers=2, width=96, heads=6, kv_heads=2, inner=160, sequence=64, "
                       "vocabulary=300, tied=true)"),
        resolved_model("llama(layers=2, width=96, heads=6, kv_heads=2, inner=160, sequence=64, "
                       "vocabulary=300, tied=false)"),
        resolved_model("moe(layers=2, width=96, heads=6, kv_heads=2, inner=80, sequence=64, vocabulary=300, "
                       "experts=4, tied=true, shared_inner=40)"),
        resolved_model("moe(layers=2, width=32, heads=2, kv_heads=1, inner=16, sequence=64, vocabulary=300, "
                       "experts=64, top_k=6, aux_loss=0.01)"),
        resolved_model("resnet(layers=20)"), resolved_model("resnet(layers=50, width=16, image=96)"),
        resolved_model("resnet(layers=18, width=16, batch_norm=sync)")}) {
    const auto model = built(choice, at::kFloat);
    const Batch batch = random_batch(*model, 8);
    double expected = 0;
    for (const auto& block : model->table().blocks)
      expected += 8 * (4 * block.activation_elements + 8 * block.indices);
    const int64_t before = meter::read().total;
    const at::Tensor loss = whole_forward(*model, batch);
    const auto kept = static_cast<double>(meter::read().total - before);
    EXPECT_NEAR(kept / expected, 1, 0.02) << to_text(choice);
  }
}

TEST(Models, StartNearTheLossOfAUniformGuess) {
  const auto gpt2 =
      built(resolved_model("gpt2(layers=2, width=128, heads=4, sequence=32, vocabulary=1000)"), at::kFloat);
  EXPECT_NEAR(whole_forward(*gpt2, random_batch(*gpt2, 4)).item<double>(), std::log(1000.0), 0.1);
  const auto llama = built(resolved_model("llama(layers=2, width=120, heads=6, kv_heads=2, inner=200, "
                                          "sequence=32, vocabulary=1000, tied=true)"),
                           at::kFloat);
  EXPECT_NEAR(whole_forward(*llama, random_batch(*llama, 4)).item<double>(), std::log(1000.0), 0.1);
  for (const char* statistics :
       {"local", "frozen"}) {  // a deep network with frozen statistics must not overflow
    const auto resnet =
        built(resolved_model("resnet(layers=110, batch_norm=" + std::string(statistics) + ")"), at::kFloat);
    EXPECT_NEAR(whole_forward(*resnet, random_batch(*resnet, 4)).item<double>(), std::log(10.0), 2)
        << statistics;
  }
}

// Every rank and every sharding draws the same values, whatever the order and the number of threads.
TEST(ModelInitialValues, AreTheSameForAModelAndForASingleParameter) {
  const auto model = built(small_models()[2]);
  const auto threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  std::set<double> sums;
  int64_t drawn = 0;
  for_each_parameter(*model, [&](const auto&, const specs::ParameterSpec& spec, const at::Tensor& value) {
    EXPECT_TRUE(at::equal(value, initial_value(spec, 1, at::kDouble))) << spec.name;
    if (spec.initial != specs::Initial::normal) return;
    ++drawn;
    sums.insert(value.sum().item<double>());
  });
  at::set_num_threads(threads);
  EXPECT_EQ(static_cast<int64_t>(sums.size()), drawn) << "two parameters start alike";
}

std::set<std::string> stems(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SHARDMARK_SOURCE_DIR) + folder))
    if (entry.path().extension() == ".cpp") names.insert(entry.path().stem());
  return names;
}

// Without this test, a missing registration, or a table without blocks, would go unnoticed until somebody
// uses the model.
TEST(ModelRegistry, HoldsEveryFile) {
  std::set<std::string> with_table, with_blocks;
  for (const auto& [name, law] : Registry<specs::ModelSpec>::instance().entries()) with_table.insert(name);
  for (const auto& [name, entry] : Registry<ModelEntry>::instance().entries()) with_blocks.insert(name);
  EXPECT_EQ(with_table, with_blocks);
  const std::set<std::string> sources = stems("/src/models");
  for (const auto& stem : stems("/src/specs/models")) {
    EXPECT_TRUE(with_table.contains(stem)) << stem;
    EXPECT_TRUE(sources.contains(stem)) << stem;
  }
}

class CountMemory : public ::testing::Environment {
  void SetUp() override { meter::install(); }
};
const auto* const count_memory = ::testing::AddGlobalTestEnvironment(new CountMemory);

}  // namespace
}  // namespace shardmark
