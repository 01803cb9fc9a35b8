// Compares a mixture of experts with its definition, token by token, and tests the auxiliary loss and the
// load of the experts.
// RANKS 1
#include <gtest/gtest.h>

#include "models/experts.h"
#include "sweep/measure.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::randn(sizes, dtype).mul_(0.3).set_requires_grad(true);
}

struct Layer {
  at::Tensor x, logits, w1, w3, w2;

  Layer(int64_t tokens, int64_t width, int64_t inner, int64_t num_experts, at::ScalarType dtype)
      : x(leaf({tokens, width}, dtype)),
        logits(leaf({tokens, num_experts}, dtype)),
        w1(leaf({num_experts, inner, width}, dtype)),
        w3(leaf({num_experts, inner, width}, dtype)),
        w2(leaf({num_experts, width, inner}, dtype)) {}

  at::Tensor by_definition(int64_t top_k) const {
    std::vector<at::Tensor> rows;
    for (int64_t token = 0; token < x.size(0); ++token) {
      const auto [chosen, index] = logits[token].topk(top_k);
      const at::Tensor weight = chosen.softmax(0);
      at::Tensor y = at::zeros({x.size(1)}, x.options());
      for (int64_t choice = 0; choice < top_k; ++choice) {
        const auto e = index[choice].item<int64_t>();
        const at::Tensor hidden = at::silu(at::mv(w1[e], x[token])) * at::mv(w3[e], x[token]);
        y = y + weight[choice] * at::mv(w2[e], hidden);
      }
      rows.push_back(y);
    }
    return at::stack(rows);
  }

  std::vector<at::Tensor> gradients(const at::Tensor& y) const {
    const at::Tensor direction = at::linspace(-1, 1, y.numel(), y.options()).view_as(y);
    return torch::autograd::grad({y}, {x, logits, w1, w3, w2}, {direction});
  }
};

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = b.detach().to(at::kDouble);
  return ((a.detach().to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

// In fp64 there is one product per expert. In fp32 the grouped product is used if rows are multiples of 16
// bytes. With 9 experts and 11 tokens, some experts get no token.
TEST(Experts, ComputeWhatTheirDefinitionSays) {
  at::manual_seed(3);
  for (const auto& [dtype, width, inner, tolerance] :
       {std::tuple{at::kDouble, 6, 5, 1e-14}, {at::kFloat, 8, 12, 1e-6}, {at::kFloat, 6, 5, 1e-6}}) {
    for (const auto& [num_experts, top_k] : {std::pair{3, 1}, {4, 2}, {9, 3}, {2, 2}}) {
      SCOPED_TRACE(
          fmt::format("{} [{}, {}] {} of {}", at::toString(dtype), width, inner, top_k, num_experts));
      const Layer layer(11, width, inner, num_experts, dtype);
      const Routing routing = routed(layer.logits, top_k);
      EXPECT_EQ(routing.ends[-1].item<int64_t>(), 11 * top_k) << "no token is dropped";
      const at::Tensor y = experts(layer.x, layer.w1, layer.w3, layer.w2, routing);
      const at::Tensor expected = layer.by_definition(top_k);
      EXPECT_LE(relative_error(y, expected), tolerance);
      const auto measured = layer.gradients(y), exact = layer.gradients(expected);
      for (size_t i = 0; i < exact.size(); ++i) {
        if (top_k == 1 && i == 1) {  // with a single choice, the weight is 1 whatever the logit
          EXPECT_EQ(measured[i].abs().max().item<double>(), 0);
          continue;
        }
        EXPECT_LE(relative_error(measured[i], exact[i]), tolerance) << "gradient " << i;
      }
    }
  }
}

TEST(Experts, OfSixteenBitTypesFollowThoseOfFloat) {
  at::manual_seed(3);
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    Layer layer(64, 16, 24, 4, dtype);
    const Routing routing = routed(layer.logits, 2);
    const at::Tensor y = experts(layer.x, layer.w1, layer.w3, layer.w2, routing);
    const auto measured = layer.gradients(y);
    for (at::Tensor* tensor : {&layer.x, &layer.logits, &layer.w1, &layer.w3, &layer.w2})
      *tensor = tensor->detach().to(at::kFloat).set_requires_grad(true);
    const at::Tensor expected = experts(layer.x, layer.w1, layer.w3, layer.w2, routed(layer.logits, 2));
    EXPECT_LE(relative_error(y, expected), 2e-2);
    const auto exact = layer.gradients(expected);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_LE(relative_error(measured[i], exact[i]), 3e-2) << i;
  }
}

const std::string kSmall =
    "moe(layers=2, width=24, heads=2, kv_heads=1, inner=20, sequence=11, vocabulary=37, experts=4, top_k=2";

struct Gradients {
  double loss;
  std::map<std::string, at::Tensor> of;
  at::Tensor load;
};

Gradients gradients_of(const std::string& model_text, double scale) {
  const auto model = make_model(resolved_model(model_text), at::kDouble, at::kCPU);
  materialize(*model, 1);
  model->loss_gradient = [&](at::ScalarType type) {
    return at::full({}, scale, at::TensorOptions().dtype(type));
  };
  at::manual_seed(5);
  const Batch batch{at::randint(37, {3, 11}, at::kLong), at::randint(37, {3, 11}, at::kLong)};
  at::Tensor h = batch.inputs;
  for (const auto& block : model->blocks()) h = block.forward(h, batch);
  h.backward(at::full({}, scale, h.options()));
  Gradients result{h.item<double>(), {}, model->expert_load};
  for (const auto& group : model->table().groups)
    for (const auto& spec : group.parameters)
      result.of[spec.name] = model->parameter(spec.name).grad() / scale;
  return result;
}

// The gradient of the auxiliary loss is scaled like that of the loss (micro-batches, fp16). It moves the
// routers, and the reported loss does not include it. peer_huggingface_test.cpp compares its value with
// Hugging Face's.
TEST(AuxiliaryLoss, AddsAGradientInProportionToItsCoefficient) {
  const Gradients plain = gradients_of(kSmall + ")", 1), some = gradients_of(kSmall + ", aux_loss=0.5)", 1);
  const Gradients twice = gradients_of(kSmall + ", aux_loss=1)", 1);
  const Gradients scaled = gradients_of(kSmall + ", aux_loss=1)", 1024);
  EXPECT_EQ(plain.loss, some.loss);
  for (const auto& [name, gradient] : plain.of) {
    SCOPED_TRACE(name);
    EXPECT_LE(relative_error(scaled.of.at(name), twice.of.at(name)), 1e-12);
    const at::Tensor added = some.of.at(name) - gradient;
    if (name.find("moe.gate") != std::string::npos) {
      EXPECT_GT(added.norm().item<double>(), 1e-3 * gradient.norm().item<double>());
    }
    EXPECT_LE((twice.of.at(name) - gradient - 2 * added).norm().item<double>(),
              1e-12 * gradient.norm().item<double>());
  }
}

// The reference on one device divides the auxiliary loss by the number of micro-batches, like the loss.
TEST(AuxiliaryLoss, OfMicroBatchesIsVerified) {
  HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  Point point = point_of({.model = kSmall + ", aux_loss=0.5)", .accumulation = 4}, comm->size());
  point.sampling.warmup_steps = point.sampling.min_steps = point.sampling.max_steps = 1;
  Resources resources;
  ReferenceCache references;
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  const Record record = measure_point({point, world, *comm, resources, references, heartbeat});
  EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
  EXPECT_EQ(record.measures.verified, "equal to one device");
}

// Every token is counted once, even if its block is recomputed in backward.
TEST(ExpertLoad, CountsEachChoiceOnce) {
  HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  for (const int64_t recompute : {0, 1}) {
    Case c{kSmall + ")", "sgd(lr=0.05)"};
    c.recompute = recompute;
    const Outcomes run = train(c, "single", *comm);
    const auto tokens = static_cast<double>(c.num_steps * c.batch_size * 11);
    EXPECT_TRUE(run.expert_load.sum(1).equal(at::full({2}, 2 * tokens, at::kDouble))) << run.expert_load;
  }
}

}  // namespace
}  // namespace shardmark
