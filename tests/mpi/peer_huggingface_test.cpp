// GPT-2 against Hugging Face's GPT2LMHeadModel with the same weights: logits and loss; and weights there and
// back.
// RANKS 1
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/mpi/training_fixture.h"
#include "train/state_file.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

class HuggingFace : public ::testing::Test {
 protected:
  HuggingFace() { fs::create_directories(folder_); }
  ~HuggingFace() override { fs::remove_all(folder_); }

  // The exit status of the peer.
  int peer(const std::string& action) const {
    const std::string source = SHARDMARK_SOURCE_DIR;
    const std::string command =
        source + "/.venv/bin/python " + source + "/tests/peer/huggingface_gpt2.py " + action + " " + folder_;
    return WEXITSTATUS(std::system(command.c_str()));
  }

  const std::string folder_ = fs::temp_directory_path() / ("peer-" + std::to_string(::getpid()));
};

TEST_F(HuggingFace, ComputesTheSameLogitsAndLoss) {
  const int written = peer("write");
  if (written == 77) GTEST_SKIP() << "transformers is not in .venv: run jobs/bootstrap.sh";
  ASSERT_EQ(written, 0);

  at::set_num_threads(1);
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("mpi", world, at::kCPU);
  Point point;
  point.workload = "train";
  auto& t = point.training;
  t.model = resolved_model("gpt2(layers=3, width=48, heads=4, sequence=24, vocabulary=101)");
  t.strategy = resolved_strategy("fsdp");
  t.optimizer = resolved_optimizer("adamw");
  TrainingSetup setup(point, *comm);
  setup.allocate();

  const SafetensorsFile weights(folder_ + "/weights.safetensors");
  weights.verify();
  check_model(weights, setup.model->table(), "small");
  load_state(setup, *comm, State::weights, &weights);

  const SafetensorsFile expected(folder_ + "/expected.safetensors");
  const at::Tensor tokens = expected.read("tokens").to(at::kLong);
  const int64_t length = tokens.size(1) - 1;
  Batch batch{tokens.narrow(1, 0, length), {}};
  const auto forward = [&] { return setup.executor->evaluate(batch); };
  const at::Tensor logits = forward(), expected_logits = expected.read("logits").flatten(0, 1);
  EXPECT_GT(expected_logits.abs().max().item<double>(), 1) << "a comparison of zeros tells nothing";
  EXPECT_LT((logits - expected_logits).abs().max().item<double>(), 1e-4);
  batch.targets = tokens.narrow(1, 1, length);
  EXPECT_NEAR(forward().item<double>(), expected.read("loss").item<double>(), 1e-4);

  ASSERT_EQ(write_state(folder_ + "/back.safetensors", setup, State::weights, {{"format", "pt"}}, true), "");
  EXPECT_EQ(peer("read"), 0);
}

}  // namespace
}  // namespace shardmark
