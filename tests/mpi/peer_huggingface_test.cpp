// Compares GPT-2, Llama and Mixtral with Hugging Face's implementations for the same weights: logits, loss,
// gradients and five steps of AdamW. Weights are exchanged in both directions.
// RANKS 1
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "checkpoint/state_file.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

// The models, by their names in tests/peer/huggingface.py.
const std::string kLlama =
    "llama(layers=2, width=16, heads=2, kv_heads=1, inner=20, sequence=12, vocabulary=23, rope_factor=8, "
    "tied=";
const std::string kMoe =
    "moe(experts=4, width=16, heads=2, kv_heads=1, inner=12, sequence=12, vocabulary=23, tied=false, "
    "rope_theta=1e6, layers=";
const std::map<std::string, std::string> kPeers = {
    {"gpt2", "gpt2(layers=2, width=16, heads=2, sequence=13, vocabulary=23)"},
    {"llama", kLlama + "false)"},
    {"llama_tied", kLlama + "true)"},
    {"moe", kMoe + "2)"},
    {"moe_aux", kMoe + "1, aux_loss=0.1)"}};

// The type in which both compute, and the largest relative difference.
struct Accuracy {
  const char* precision;
  at::ScalarType dtype;
  double tolerance;
};

class HuggingFace : public ::testing::Test {
 protected:
  HuggingFace() {
    fs::create_directories(folder_);
    at::set_num_threads(1);
  }
  ~HuggingFace() override { fs::remove_all(folder_); }

  // Runs tests/peer/huggingface.py and returns its exit status.
  int peer(const std::string& action) const {
    const fs::path source = SHARDMARK_SOURCE_DIR;
    const std::string command = (source / ".venv/bin/python ").string() +
                                (source / "tests/peer/huggingface.py ").string() + action + " " +
                                folder_.string();
    return WEXITSTATUS(std::system(command.c_str()));
  }

  static void expect_near(const at::Tensor& measured, const at::Tensor& expected, double tolerance) {
    const at::Tensor exact = expected.to(at::kDouble);
    ASSERT_GT(exact.norm().item<double>(), 0) << "a comparison of zeros tells nothing";
    EXPECT_LE(((measured.to(at::kDouble) - exact).norm() / exact.norm()).item<double>(), tolerance);
  }

  // The contents of a folder that the peer wrote.
  struct Written {
    explicit Written(const fs::path& folder)
        : weights(folder / "model.safetensors.index.json"), expected(folder / "expected.safetensors") {
      const at::Tensor tokens = expected.read("tokens").to(at::kLong);
      const int64_t length = tokens.size(1) - 1;
      batch = {tokens.narrow(1, 0, length), tokens.narrow(1, 1, length)};
    }
    SafetensorsFile weights, expected;
    Batch batch;
  };

  // Compares the values that the model alone gives.
  static void expect_values(const Written& written, const Choice& choice, const Accuracy& accuracy) {
    const auto model = make_model(choice, accuracy.dtype, at::kCPU);
    const auto visit = [&](const auto& body) {
      for (const auto& group : model->table().groups)
        for (const auto& spec : group.parameters) body(spec.name, model->parameter(spec.name));
    };
    visit([&](const std::string& name, at::Tensor& parameter) {
      parameter = read_tensor(written.weights, name).to(accuracy.dtype).set_requires_grad(true);
    });
    const auto forward = [&](const Batch& batch) {
      at::Tensor h = batch.inputs;
      for (const auto& block : model->blocks()) h = block.forward(h, batch);
      return h;
    };
    const at::Tensor logits = written.expected.read("logits").flatten(0, 1);
    expect_near(forward({written.batch.inputs, {}}).detach(), logits, accuracy.tolerance);
    const at::Tensor loss = forward(written.batch);
    expect_near(loss.detach(), written.expected.read("loss"), accuracy.tolerance);
    loss.backward();
    visit([&](const std::string& name, at::Tensor& parameter) {
      SCOPED_TRACE("gradient of " + name);
      expect_near(parameter.grad(), read_tensor(written.expected, "gradient." + name), accuracy.tolerance);
    });
  }

  // Trains as `shardmark train` does. If `back` is not empty, the weights are written there for the peer
  // before the first step.
  void expect_steps(const Written& written, const Choice& choice, const Accuracy& accuracy,
                    const fs::path& back) {
    Point point;
    point.workload = "train";
    auto& t = point.training;
    t.model = choice;
    t.strategy = resolved_strategy("fsdp");
    t.optimizer = resolved_optimizer("adamw(lr=0.01, beta2=0.95, eps=1e-4, weight_decay=0.1)");
    t.precision = accuracy.precision;
    t.batch_size = written.batch.num_samples();
    TrainingSetup setup(point, *comm_);
    setup.allocate();
    written.weights.verify();
    check_model(written.weights, setup.model->table(), "small");
    load_state(setup, *comm_, State::weights, &written.weights);
    if (!back.empty()) {
      ASSERT_EQ(write_state(back, setup, State::weights, {{"format", "pt"}}, true), "");
    }
    for (int step = 0; step < 5; ++step) setup.executor->step([&] { return written.batch; });
    setup.state->visit(State::weights, [&](const std::string& name, const at::Tensor& value) {
      SCOPED_TRACE("after five steps: " + name);
      expect_near(value, read_tensor(written.expected, "after." + name), accuracy.tolerance);
    });
  }

  void expect_equal(const fs::path& folder, const std::string& model, bool goes_back) {
    const Written written(folder);
    const Choice choice = resolved_model(model);
    for (const Accuracy& accuracy :
         {Accuracy{"fp64", at::kDouble, 1e-10}, Accuracy{"fp32", at::kFloat, 1e-5}}) {
      SCOPED_TRACE(model + " in " + accuracy.precision);
      expect_values(written, choice, accuracy);
      const bool back = goes_back && accuracy.dtype == at::kFloat;
      expect_steps(written, choice, accuracy, back ? folder / "back.safetensors" : fs::path());
    }
  }

  const fs::path folder_ = fs::temp_directory_path() / ("peer-" + std::to_string(::getpid()));
  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ = make_communicator("pt2pt", world_, at::kCPU);
};

TEST_F(HuggingFace, ComputesTheSameAndTakesTheWeightsBack) {
  const int written = peer("write");
  if (written == 77) GTEST_SKIP() << "transformers is not in .venv: run jobs/bootstrap.sh";
  ASSERT_EQ(written, 0);
  for (const auto& [name, model] : kPeers) expect_equal(folder_ / name, model, /*goes_back=*/true);
  EXPECT_EQ(peer("read"), 0);
}

TEST_F(HuggingFace, ComputedTheSame) {
  for (const char* model : {"llama", "moe_aux"}) {
    expect_equal(fs::path(SHARDMARK_TEST_DATA) / model, kPeers.at(model), /*goes_back=*/false);
  }
}

}  // namespace
}  // namespace shardmark
