// A checkpoint with a file for each rank holds the whole state: under every strategy and layout, what is read
// is what was written, bit by bit, and the files are as large as the formula says.
// RANKS 1 2 4
#include "checkpoint/shard_files.h"

#include <filesystem>

#include "strategies/saved_state.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShardedGpt2 = "gpt2(layers=4, width=24, heads=2, sequence=8, vocabulary=37)";

class ShardFiles : public OnCpuRanks {
 protected:
  ShardFiles() {
    folder = fs::temp_directory_path() / ("shard_files_" + std::to_string(world.broadcast(::getpid(), 0)));
    fs::create_directories(folder);
  }
  ~ShardFiles() override {
    world.barrier();
    std::error_code ignored;
    if (world.rank() == 0) fs::remove_all(folder, ignored);
  }

  std::string write(const TrainingSetup& setup) {
    const auto file = own_state_file(folder, setup);
    visit_own_state(setup, /*copies=*/false,
                    [&](const std::string& name, const at::Tensor& value) { file->add(name, value); });
    const std::string trouble = file->finish();
    world.barrier();
    return trouble;
  }

  // Bytes of all tensors but single numbers, of all ranks.
  double data_bytes() const {
    double bytes = 0;
    const SafetensorsFile file(shard_path(folder, world.rank()));
    for (const auto& [name, entry] : file.entries())
      if (!entry.shape.empty()) bytes += static_cast<double>(entry.num_bytes);
    return world.sum(bytes);
  }

  void expect_read_as_written(const Layout& layout) {
    const Point point = point_of(layout, comm->size());
    if (!strategies::layout_impossible(point).empty()) return;
    SCOPED_TRACE(to_text(point));
    TrainingSetup setup(point, *comm);
    setup.allocate();
    setup.state->publish();
    const auto source = make_source(point.training.data, {setup.whole.sample, setup.model->dtype(), 7});
    Loader loader(*source, DistributedSampler(point, source->size(), setup.data_rank()), comm->device(), 0);
    const auto step = [&] {
      const double loss = setup.executor->step([&] { return loader.next(); }).loss.item<double>();
      if (setup.executor->failure()) std::rethrow_exception(setup.executor->failure());
      return loss;
    };
    step();
    step();

    ASSERT_EQ(write(setup), "");
    EXPECT_EQ(data_bytes(), static_cast<double>(strategies::sharded_state_bytes(point)));
    std::vector<at::Tensor> before;
    for (const auto& own : own_state(setup)) {
      before.push_back(own.values.clone());
      own.values.zero_();
    }
    load_own_state(folder, setup);
    setup.state->optimizer().parameters_changed();
    setup.state->publish();
    const auto after = own_state(setup);
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].values.equal(before[i])) << after[i].name;
    EXPECT_TRUE(std::isfinite(step()));
    ++num_tried;
    world.barrier();
  }

  fs::path folder;
  int num_tried = 0;
};

TEST_F(ShardFiles, HoldTheStateOfEveryStrategy) {
  std::vector<std::string> strategies = {"ddp",
                                         "ddp(reduction=topk)",
                                         "fsdp",
                                         "fsdp(shard=gradients)",
                                         "fsdp(shard=optimizer)",
                                         "fsdp(layout=dim0)",
                                         "fsdp(group=1)",
                                         "fsdp(offload=optimizer)",
                                         "zero3",
                                         "zero3(persistence=30)"};
  if (comm->size() == 1) strategies.emplace_back("single");
  if (comm->size() == 4) strategies.insert(strategies.end(), {"fsdp(group=2)", "hpz(group=2)"});
  for (const auto& strategy : strategies)
    for (const std::string precision : {"fp32", "bf16", "fp64"})
      expect_read_as_written({.model = kShardedGpt2, .strategy = strategy, .precision = precision});
  expect_read_as_written({.model = "resnet(layers=20, width=3)", .strategy = "fsdp", .accumulation = 1});
  expect_read_as_written({.model = kShardedGpt2, .optimizer = "sgd(momentum=0)", .precision = "fp16"});
  EXPECT_EQ(num_tried, 3 * std::ssize(strategies) + 2);
}

TEST_F(ShardFiles, HoldTheStateOfEveryLayout) {
  if (comm->size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const std::string strategy : {"ddp", "fsdp", "zero3"})
    for (const std::string order : {"dp-pp", "pp-dp"})
      for (const int64_t pipeline : {1, 2, 4})
        for (const int64_t tensor : {1, 2})
          for (const int64_t context : {1, 2})
            if (pipeline * tensor * context > 1 && comm->size() % (pipeline * tensor * context) == 0)
              expect_read_as_written({.model = kShardedGpt2,
                                      .strategy = strategy,
                                      .pipeline = pipeline,
                                      .rank_order = order,
                                      .tensor = tensor,
                                      .context = context});
  EXPECT_GE(num_tried, 9);
}

TEST_F(ShardFiles, HoldTheStateOfExpertsThatRanksShare) {
  if (comm->size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const int64_t pipeline : {1, 2})
    for (const int64_t expert : {2, 4})
      if (comm->size() % (pipeline * expert) == 0)
        for (const std::string strategy : {"ddp", "fsdp(shard=optimizer)"})
          expect_read_as_written({.model =
                                      "moe(layers=4, width=24, heads=2, kv_heads=1, inner=20, sequence=8, "
                                      "vocabulary=37, experts=4)",
                                  .strategy = strategy,
                                  .pipeline = pipeline,
                                  .expert = expert});
  EXPECT_EQ(num_tried, comm->size() == 2 ? 2 : 6);
}

// Copies of the model share out what each of them could write.
TEST_F(ShardFiles, WriteNothingTwice) {
  const Point point = point_of({.model = kShardedGpt2, .strategy = "ddp"}, comm->size());
  TrainingSetup setup(point, *comm);
  setup.allocate();
  setup.state->publish();
  ASSERT_EQ(write(setup), "");
  const auto own = static_cast<double>(fs::file_size(shard_path(folder, world.rank())));
  const double all = data_bytes();
  EXPECT_EQ(all, static_cast<double>(strategies::sharded_state_bytes(point)));
  EXPECT_NEAR(own, all / world.size(), 20000);  // headers
  // But for the padding of a group to 128 elements of each tensor.
  EXPECT_NEAR(all, static_cast<double>(strategies::whole_state_bytes(point)), 0.2 * all);
}

TEST_F(ShardFiles, NameTheFileThatIsMissingOrDamaged) {
  const Point point = point_of({.model = kShardedGpt2, .strategy = "ddp"}, comm->size());
  TrainingSetup setup(point, *comm);
  setup.allocate();
  setup.state->publish();
  ASSERT_EQ(write(setup), "");
  const std::string last = shard_path(folder, world.size() - 1);
  world.barrier();
  if (world.rank() == 0) fs::resize_file(last, fs::file_size(last) - 1);
  world.barrier();
  try {
    load_own_state(folder, setup);
    ADD_FAILURE() << "a truncated file was read";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(last), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace shardmark
