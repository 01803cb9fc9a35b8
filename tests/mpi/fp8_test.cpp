// Products in 8-bit floating point: rounding by the tables of both types, products and their gradients
// against an oracle, and training under every strategy and layout against one device. RANKS 1 2 4
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/experts.h"
#include "models/layers.h"
#include "sweep/measure.h"
#include "tests/mpi/emulated_kernels.h"
#include "tests/mpi/kernel_checks.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

const std::vector<std::string> kRecipes = {"fp8", "fp8(gradients=e4m3)", "fp8(scaling=row)",
                                           "fp8(scaling=row, gradients=e4m3)",
                                           "fp8(scaling=block, gradients=e4m3)"};
const std::string kSmallGpt2 = "gpt2(layers=3, width=24, heads=4, sequence=12, vocabulary=37)",
                  kSmallLlama =
                      "llama(layers=3, width=24, heads=4, kv_heads=2, inner=20, sequence=12, "
                      "vocabulary=37)",
                  kSmallMoe =
                      "moe(layers=3, width=24, heads=4, kv_heads=2, inner=20, sequence=12, "
                      "vocabulary=37, experts=4, top_k=2)";

// The numbers of a type, by its definition: a sign, bits of the exponent and of the mantissa. E4M3 has no
// infinity and one NaN, so that it reaches 448; E5M2 is as IEEE 754 has it. Source: Micikevicius et al. 2022,
// table 1.
std::vector<double> numbers_of(at::ScalarType type) {
  const bool is_e4m3 = type == at::kFloat8_e4m3fn;
  const int mantissa_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15;
  std::vector<double> numbers;
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    if (is_e4m3 ? code == 127 : exponent == 31) continue;  // NaN, infinity
    const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
    numbers.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                    : std::ldexp(1 + fraction, exponent - bias));
  }
  return numbers;
}

class Fp8Products : public Layouts {};

// The rows of x rounded to the type, and scaled back.
at::Tensor rounded_rows(const Fp8& fp8, const at::Tensor& x, Holds holds) {
  const Fp8Lines lines = fp8_matrix(fp8, x, holds, {true, false}, fp8_largest(fp8, x)).rows.lines;
  return lines.codes.to(x.scalar_type()) * lines.scale;
}

TEST_F(Fp8Products, RoundToTheNearestNumberOfTheType) {
  for (const Holds holds : {Holds::values, Holds::gradients}) {
    const Fp8 fp8{Fp8::Scaling::tensor, at::kFloat8_e5m2, {}};
    const at::ScalarType type = holds == Holds::values ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
    const std::vector<double> numbers = numbers_of(type);
    ASSERT_EQ(numbers.back(), type == at::kFloat8_e4m3fn ? 448 : 57344);
    std::vector<double> given, expected;
    const auto add = [&](double value, double rounded) {
      for (const double sign : {1.0, -1.0}) {
        given.push_back(sign * value);
        expected.push_back(sign * rounded);
      }
    };
    for (size_t i = 0; i < numbers.size(); ++i) {
      add(numbers[i], numbers[i]);
      if (i + 1 == numbers.size()) break;
      const double middle = (numbers[i] + numbers[i + 1]) / 2, step = numbers[i + 1] - numbers[i];
      add(middle, numbers[i % 2 == 0 ? i : i + 1]);  // a tie goes to the even code
      add(middle - step / 1024, numbers[i]);
      add(middle + step / 1024, numbers[i + 1]);
    }
    // The largest number is among them, so that the scale is 1.
    for (const at::ScalarType wide : {at::kFloat, at::kDouble}) {
      const at::Tensor found =
          rounded_rows(fp8, at::tensor(given, at::kDouble).to(wide).view({-1, 2}), holds);
      EXPECT_TRUE(found.to(at::kDouble).flatten().equal(at::tensor(expected, at::kDouble))) << type;
    }
    // Other scales are exact in powers of two, and no number becomes infinite.
    const at::Tensor scaled =
        rounded_rows(fp8, at::tensor(given, at::kDouble).mul(0.25).view({-1, 2}), holds);
    EXPECT_TRUE(scaled.flatten().equal(at::tensor(expected, at::kDouble).mul(0.25)));
  }
  const Fp8 fp8{Fp8::Scaling::row, at::kFloat8_e5m2, {}};
  EXPECT_TRUE(rounded_rows(fp8, at::zeros({2, 3}), Holds::values).equal(at::zeros({2, 3})));
  EXPECT_TRUE(rounded_rows(fp8, at::full({2, 3}, NAN), Holds::values).isnan().all().item<bool>());
  const at::Tensor none = at::zeros({0, 3}), weight = at::ones({4, 3});
  const auto factor = [&](const at::Tensor& x) {
    return fp8_matrix(fp8, x, Holds::values, {true, true}, fp8_largest(fp8, x));
  };
  EXPECT_TRUE(fp8_product(fp8, factor(none).rows, factor(weight).rows, at::kFloat).equal(at::zeros({0, 4})));
  EXPECT_TRUE(
      fp8_product(fp8, factor(none).columns, factor(none).columns, at::kFloat).equal(at::zeros({3, 3})));
}

// Rounds one number after the other, with scales that are found one by one.
at::Tensor rounded_one_by_one(const at::Tensor& x, at::ScalarType type, Fp8::Scaling scaling, int64_t dim) {
  const std::vector<double> numbers = numbers_of(type);
  const at::Tensor wide = x.to(at::kDouble).contiguous(), out = at::empty_like(wide);
  const auto from = wide.accessor<double, 2>();
  auto to = out.accessor<double, 2>();
  const auto largest = [&](int64_t i, int64_t j) {
    double most = 0;
    for (int64_t a = 0; a < wide.size(0); ++a)
      for (int64_t b = 0; b < wide.size(1); ++b)
        if (scaling == Fp8::Scaling::tensor ||
            ((dim == 1 ? a == i : b == j) &&
             (scaling == Fp8::Scaling::row || (dim == 1 ? b / 32 == j / 32 : a / 32 == i / 32))))
          most = std::max(most, std::abs(from[a][b]));
    return most;
  };
  const auto scale_of = [&](double most) {
    if (scaling != Fp8::Scaling::block) return most / numbers.back();
    return std::exp2(std::floor(std::log2(most)) - std::floor(std::log2(numbers.back())));
  };
  for (int64_t i = 0; i < wide.size(0); ++i)
    for (int64_t j = 0; j < wide.size(1); ++j) {
      const double scale = scale_of(largest(i, j));
      const double value = std::min(std::abs(from[i][j]) / scale, numbers.back());
      const auto above = std::lower_bound(numbers.begin(), numbers.end(), value);
      double nearest = above == numbers.end() ? numbers.back() : *above;
      if (above != numbers.begin() && above != numbers.end()) {
        const double below = *std::prev(above), middle = (below + *above) / 2;
        const bool is_even_below = std::distance(numbers.begin(), above) % 2 == 1;
        if (value < middle || (value == middle && is_even_below)) nearest = below;
      }
      to[i][j] = std::copysign(nearest * scale, from[i][j]);
    }
  return out;
}

// y = x W^T, dx = dy W, dW = dy^T x, each of rounded factors; a bias and its gradient are not rounded.
TEST_F(Fp8Products, OfLinearLayersEqualAnOracle) {
  constexpr int64_t kRows = 34, kIn = 40, kOut = 12;
  for (const std::string& recipe : kRecipes)
    for (const bool is_projection : {false, true}) {
      SCOPED_TRACE(recipe);
      const auto model = make_model(resolved_model(kSmallGpt2), at::kDouble, at::kCPU);
      model->fp8 = fp8_of(resolved_products(recipe));
      at::manual_seed(3);
      const at::Tensor x = at::randn({kRows, kIn}, at::kDouble).requires_grad_(true);
      const at::Tensor weight =
          at::randn(is_projection ? at::IntArrayRef{kIn, kOut} : at::IntArrayRef{kOut, kIn}, at::kDouble)
              .requires_grad_(true);
      const at::Tensor bias = at::randn({kOut}, at::kDouble).requires_grad_(true);
      const at::Tensor dy = at::randn({kRows, kOut}, at::kDouble);
      const at::Tensor y = is_projection ? split_projection(*model, x, weight, bias, fp8_of(*model))
                                         : split_linear(*model, x, weight, bias, fp8_of(*model));
      const auto gradients = torch::autograd::grad({y}, {x, weight, bias}, {dy});
      const auto product = [&](const at::Tensor& a, bool a_is_gradient, const at::Tensor& b,
                               bool b_is_gradient) {
        const auto type = [&](bool is_gradient) {
          return is_gradient ? model->fp8->gradients : at::kFloat8_e4m3fn;
        };
        return at::mm(rounded_one_by_one(a, type(a_is_gradient), model->fp8->scaling, 1),
                      rounded_one_by_one(b, type(b_is_gradient), model->fp8->scaling, 0));
      };
      const at::Tensor w = (is_projection ? weight.t() : weight).detach(), plain_x = x.detach();
      const at::Tensor dw = product(dy.t(), true, plain_x, false);
      const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).abs().max() / b.abs().max()).item<double>();
      };
      EXPECT_LE(difference(y.detach(), product(plain_x, false, w.t(), false) + bias.detach()), 1e-12);
      EXPECT_LE(difference(gradients[0], product(dy, true, w, false)), 1e-12);
      EXPECT_LE(difference(gradients[1], is_projection ? product(plain_x.t(), false, dy, true) : dw), 1e-12);
      EXPECT_LE(difference(gradients[2], dy.sum(0)), 1e-12);
      // The rounding is there: products in the type of the model are a few percent off.
      EXPECT_GT(difference(y.detach(), at::linear(plain_x, w, bias.detach())), 1e-3);
    }
}

// The CPU's own product checks the call that GPUs make: what is transposed, and which scale is whose.
TEST_F(Fp8Products, OfTheDeviceEqualEmulatedOnes) {
  for (const std::string recipe : {"fp8", "fp8(gradients=e4m3)"})
    check_fp8_products(*fp8_of(resolved_products(recipe)), at::kCPU);
}

// One byte for each scale, where cuBLAS's documentation says that it is, and 1 where there is no line or
// block.
TEST_F(Fp8Products, ScalesOfBlocksAreTiledAsCublasReadsThem) {
  at::manual_seed(4);
  for (const auto& [lines, blocks] : {std::pair<int64_t, int64_t>{128, 4}, {16, 1}, {300, 9}}) {
    const at::Tensor exponents = at::randint(-127, 128, {lines, blocks}, at::kLong);
    const at::Tensor tiled = tiled_exponents(at::ldexp(at::ones({lines, blocks}), exponents)).view(at::kByte);
    const int64_t tiles_across = (blocks + 3) / 4, tiles = (lines + 127) / 128 * tiles_across;
    ASSERT_EQ(tiled.numel(), tiles * 512);
    at::Tensor expected = at::full({tiles * 512}, 127, at::kByte);
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t block = 0; block < blocks; ++block)
        expected[(line / 128 * tiles_across + block / 4) * 512 + line % 32 * 16 + line % 128 / 32 * 4 +
                 block % 4] = exponents[line][block] + 127;
    EXPECT_TRUE(tiled.equal(expected)) << lines << " x " << blocks;
  }
}

// The kernels that round on a GPU, run as C++, change no bit of a step in bf16, whether backward is in one
// part or in two.
TEST_F(Fp8Products, WithKernelsHaveTheSameBits) {
  if (comm->size() > 1) GTEST_SKIP() << "one rank is enough";
  for (const std::string recipe : {"fp8", "fp8(scaling=row, gradients=e4m3)", "fp8(scaling=block)"})
    for (const std::string text : {"gpt2(layers=2, width=32, heads=2, sequence=16, vocabulary=37)",
                                   "llama(layers=2, width=32, heads=2, kv_heads=1, inner=48, sequence=16, "
                                   "vocabulary=37)",
                                   "moe(layers=2, width=32, heads=2, kv_heads=1, inner=48, sequence=16, "
                                   "vocabulary=37, experts=4, top_k=2)"})
      for (const bool is_split : {false, true}) {
        SCOPED_TRACE(recipe + " " + text);
        const auto gradients = [&](const Kernels& kernels) {
          const auto model = make_model(resolved_model(text), at::kBFloat16, at::kCPU);
          materialize(*model, 7);
          model->fp8 = fp8_of(resolved_products(recipe));
          model->fp8->kernels = kernels;
          model->splits_backward = is_split;
          DeferredGradients deferred;
          model->deferred = is_split ? &deferred : nullptr;
          // The first part of a backward must not touch the gradients of what splits.
          std::vector<at::Tensor> all;
          const auto bind = [&](const auto& is_bound) {
            for (const auto& group : model->table().groups)
              for (const auto& spec : group.parameters)
                if (is_bound(spec.name)) {
                  at::Tensor& parameter = model->parameter(spec.name);
                  all.push_back(parameter.mutable_grad() = at::zeros_like(parameter));
                }
          };
          const auto splits = [&](const std::string& name) {
            return is_split &&
                   (name.find("c_") != std::string::npos || name.find("proj") != std::string::npos ||
                    name.find("experts") != std::string::npos);
          };
          bind([&](const std::string& name) { return !splits(name); });
          at::manual_seed(3);
          const Batch batch =
              model->prepared({at::randint(37, {2, 16}, at::kLong), at::randint(37, {2, 16}, at::kLong)});
          at::Tensor h = batch.inputs;
          for (const auto& block : model->blocks()) h = block.forward(h, batch);
          h.backward();
          bind(splits);
          for (auto& add : deferred) add();
          all.push_back(h.detach());
          return all;
        };
        const std::vector<at::Tensor> plain = gradients({}), by_kernels = gradients(emulated_kernels());
        for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(by_kernels[i].equal(plain[i])) << i;
        EXPECT_GT(plain[0].abs().sum().item<double>(), 0);
      }
}

// A mixture's experts by definition, with rounded factors: the copies that go to an expert are one matrix,
// and so are each of its weights.
TEST_F(Fp8Products, OfExpertsEqualAnOracle) {
  constexpr int64_t kTokens = 9, kWidth = 16, kInner = 12, kExperts = 3, kTopK = 2;
  for (const std::string& recipe : kRecipes) {
    SCOPED_TRACE(recipe);
    const auto model = make_model(resolved_model(kSmallMoe), at::kDouble, at::kCPU);
    model->fp8 = fp8_of(resolved_products(recipe));
    at::manual_seed(5);
    const auto leaf = [](at::IntArrayRef shape) {
      return at::randn(shape, at::kDouble).requires_grad_(true);
    };
    const at::Tensor x = leaf({kTokens, kWidth}), w1 = leaf({kExperts, kInner, kWidth}),
                     w3 = leaf({kExperts, kInner, kWidth}), w2 = leaf({kExperts, kWidth, kInner});
    const Routing routes = routed(at::randn({kTokens, kExperts}, at::kDouble), kTopK);
    const at::Tensor dy = at::randn({kTokens, kWidth}, at::kDouble);
    const at::Tensor y = experts(x, w1, w3, w2, routes, model.get());
    const auto found = torch::autograd::grad({y}, {x, w1, w3, w2}, {dy});

    const at::NoGradGuard no_grad;
    const auto rounded = [&](const at::Tensor& matrix, Holds holds, int64_t dim) {
      return rounded_one_by_one(matrix,
                                holds == Holds::gradients ? model->fp8->gradients : at::kFloat8_e4m3fn,
                                model->fp8->scaling, dim);
    };
    const auto end = [&](int64_t expert) { return expert < 0 ? 0 : routes.ends[expert].item<int64_t>(); };
    const auto of_expert = [&](const at::Tensor& rows, int64_t expert) {
      return rows.narrow(0, end(expert - 1), end(expert) - end(expert - 1));
    };
    const auto product = [&](const at::Tensor& rows, Holds holds, const at::Tensor& weights,
                             bool transposed) {
      std::vector<at::Tensor> parts;
      for (int64_t e = 0; e < kExperts; ++e)
        parts.push_back(at::mm(rounded(of_expert(rows, e), holds, 1),
                               rounded(transposed ? weights[e].t() : weights[e], Holds::values, 0)));
      return at::cat(parts);
    };
    const auto gradient = [&](const at::Tensor& of_outputs, const at::Tensor& inputs) {
      std::vector<at::Tensor> parts;
      for (int64_t e = 0; e < kExperts; ++e)
        parts.push_back(at::mm(rounded(of_expert(of_outputs, e), Holds::gradients, 0).t(),
                               rounded(of_expert(inputs, e), Holds::values, 0)));
      return at::stack(parts);
    };
    const at::Tensor token = routes.order.div(kTopK, "floor"), rows = x.index_select(0, token);
    const at::Tensor weight = routes.weights.flatten().index_select(0, routes.order).unsqueeze(1);
    const at::Tensor gate = product(rows, Holds::values, w1, true),
                     up = product(rows, Holds::values, w3, true);
    const at::Tensor hidden = at::silu(gate) * up * weight;
    const auto added = [&](const at::Tensor& of_copies) {
      return at::zeros({kTokens, kWidth}, at::kDouble).index_add_(0, token, of_copies);
    };
    const at::Tensor drows = dy.index_select(0, token);
    const at::Tensor dhidden = product(drows, Holds::gradients, w2, false) * weight;
    const at::Tensor dup = at::silu(gate) * dhidden, dgate = at::silu_backward(dhidden * up, gate);
    const at::Tensor expected[] = {
        added(product(dgate, Holds::gradients, w1, false) + product(dup, Holds::gradients, w3, false)),
        gradient(dgate, rows), gradient(dup, rows), gradient(drows, hidden)};
    const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
      return ((a - b).abs().max() / b.abs().max()).item<double>();
    };
    EXPECT_LE(difference(y, added(product(hidden, Holds::values, w2, true))), 1e-12);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(difference(found[i], expected[i]), 1e-12) << i;
  }
}

// A change of a weight that is far smaller than a step of the type changes nothing, where the weight is
// rounded.
TEST_F(Fp8Products, AreThoseOfLinearLayersAndExpertsAlone) {
  for (const std::string& text : {kSmallGpt2, kSmallLlama, kSmallMoe}) {
    const auto model = make_model(resolved_model(text), at::kDouble, at::kCPU);
    materialize(*model, 7);
    model->fp8 = fp8_of(resolved_products("fp8"));
    const at::Tensor ids = at::arange(24, at::kLong).view({2, 12});
    const Batch batch = model->prepared({ids, ids});
    const int64_t last = std::ssize(model->blocks()) - 1;
    const at::NoGradGuard no_grad;
    for (const int64_t block : {last - 1, last}) {
      at::manual_seed(2);
      const at::Tensor x = at::randn({24, 24}, at::kDouble);
      const auto output = [&] {
        return model->blocks()[static_cast<size_t>(block)].forward(x, batch).clone();
      };
      const at::Tensor before = output();
      for (const specs::GroupSpec& group : model->table().groups) {
        if (group.first_block > block || group.last_block < block) continue;
        for (const specs::ParameterSpec& parameter : group.parameters) {
          if (parameter.name.find("wpe") != std::string::npos) continue;  // the first block's
          const at::Tensor values = model->parameter(parameter.name).detach().view(-1).narrow(0, 1, 1);
          const at::Tensor old = values.clone();
          const bool is_router = parameter.name.find("block_sparse_moe.gate") != std::string::npos;
          values.add_(1e-8);
          if (block == last) {
            EXPECT_FALSE(output().equal(before)) << text << ": " << parameter.name;
          } else if (parameter.shape.size() >= 2 && !is_router) {
            EXPECT_TRUE(output().equal(before)) << text << ": " << parameter.name;
          }
          values.add_(1);
          if (group.first_block == group.last_block) {
            EXPECT_FALSE(output().equal(before)) << text << ": " << parameter.name;
          }
          values.copy_(old);
        }
      }
    }
  }
}

// Micro-batches have scales of their own, and weights are whole where they are rounded, so that all ranks
// round as one device does.
TEST_F(Fp8Products, UnderStrategiesAndPipelinesEqualSingle) {
  for (const std::string& recipe : kRecipes)
    for (const std::string& model : {kSmallGpt2, kSmallLlama, kSmallMoe}) {
      for (const std::string strategy : {"ddp", "fsdp", "fsdp(shard=optimizer)", "zero3"})
        expect_equal({.model = model, .strategy = strategy, .accumulation = 2, .products = recipe});
      expect_equal(
          {.model = model, .strategy = "fsdp", .accumulation = 2, .recompute = 1, .products = recipe});
      if (comm->size() > 1 && (recipe == kRecipes.front() || recipe == kRecipes.back()))
        for (const std::string& schedule : kSchedules)
          for (const std::string strategy : {"ddp", "fsdp"})
            if (strategy == "ddp" || model == kSmallGpt2)
              expect_equal({.model = model,
                            .strategy = strategy,
                            .pipeline = 2,
                            .schedule = schedule,
                            .products = recipe});
    }
}

// Ranks that have a part of a matrix find other scales. Losses and norms differ by as little as those of low
// precision do.
TEST_F(Fp8Products, OfPartsOfMatricesAreNearSingle) {
  if (comm->size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const std::string& recipe : kRecipes)
    for (const Layout& layout :
         {Layout{.model = kSmallGpt2, .tensor = 2},
          {.model = kSmallLlama, .tensor = 2, .sequence_parallel = true},
          {.model = kSmallLlama, .recompute = kGatheredInputs, .tensor = 2, .sequence_parallel = true},
          {.model = kSmallLlama, .context = 2},
          {.model = kSmallMoe, .expert = 2},
          {.model = kSmallMoe, .expert = 2, .dispatch = 1}}) {
      Layout with_products = layout;
      with_products.products = recipe;
      const Point point = point_of(with_products, comm->size());
      SCOPED_TRACE(to_text(point));
      const Outcomes &single = single_of(with_products, point.data_ranks()),
                     run = train_layout(with_products, *comm);
      EXPECT_LE(largest_relative(run.losses, single.losses), 0.01);
      EXPECT_LE(largest_relative(run.norms, single.norms), 0.05);
      const Outcomes& plain = single_of(layout, point.data_ranks());
      EXPECT_GT(largest_relative(run.norms, plain.norms), 1e-6) << "nothing was rounded";
    }
}

// Blocks of 32 numbers are whole on every tensor rank here, so that all find the scales of one device.
TEST_F(Fp8Products, OfBlocksEqualSingleOverTensorRanks) {
  if (comm->size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const std::string model :
       {"gpt2(layers=2, width=64, heads=2, sequence=8, vocabulary=37)",
        "llama(layers=2, width=64, heads=2, kv_heads=2, inner=64, sequence=8, vocabulary=37)"})
    for (const bool sequence_parallel : {false, true})
      expect_equal({.model = model,
                    .tensor = 2,
                    .sequence_parallel = sequence_parallel,
                    .products = "fp8(scaling=block, gradients=e4m3)"});
}

// A point of a sweep proves itself, also where ranks have a part of a matrix.
TEST_F(Fp8Products, AreVerifiedByASweep) {
  for (const std::string precision : {"fp32", "bf16"})
    for (const std::string products : {"compute", "fp8", "fp8(scaling=row)"})
      for (const int64_t tensor : {int64_t{1}, std::min<int64_t>(2, comm->size())}) {
        const Record record = measured({.model = kSmallLlama,
                                        .accumulation = 2,
                                        .precision = precision,
                                        .tensor = tensor,
                                        .products = products},
                                       world, *comm);
        EXPECT_EQ(record.outcome, Outcome::ok) << precision << " " << products << ": " << record.reason;
        EXPECT_EQ(record.measures.verified, "equal to one device") << precision << " " << products;
      }
}

// 200 steps of a small model: the losses of fp8 stay within a band of 2 % around those of the plain
// products, as the mean over each 50 steps, and fall as far.
TEST_F(Fp8Products, TrainAsFarAsPlainProducts) {
  if (comm->size() > 1) GTEST_SKIP() << "one rank is enough";
  const auto losses_of = [&](const std::string& products) {
    Case c{"gpt2(layers=2, width=64, heads=4, sequence=32, vocabulary=97)", "adamw(lr=0.003)", at::kFloat};
    c.batch_size = 4;
    c.num_steps = 200;
    c.norm_every = 1000;
    c.products = resolved_products(products);
    return train(c, "single", *comm).losses;
  };
  const auto mean_of = [](const std::vector<double>& losses, size_t first) {
    double sum = 0;
    for (size_t step = first; step < first + 50; ++step) sum += losses[step];
    return sum / 50;
  };
  const std::vector<double> plain = losses_of("compute");
  EXPECT_LT(mean_of(plain, 150), 0.9 * plain.front()) << "it learns nothing that could be compared";
  for (const std::string recipe : {"fp8", "fp8(scaling=row)"}) {
    const std::vector<double> losses = losses_of(recipe);
    for (const size_t first : {0, 50, 100, 150})
      EXPECT_NEAR(mean_of(losses, first) / mean_of(plain, first), 1, 0.02)
          << recipe << " from step " << first;
  }
}

}  // namespace
}  // namespace shardmark
