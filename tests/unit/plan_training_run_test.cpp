// Tests the YAML file of a training run. It is read like a training block of a suite, with one value per key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "plan/suite.h"
#include "plan/training_run.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of_run(const std::string& text) {
  try {
    parse_training_run(text, "r.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainingRunFile, HoldsWhatIsWritten) {
  const TrainingRun run = parse_training_run(R"(
model: {gpt2: {layers: 2}}
strategy: {fsdp: {shard: gradients}}
optimizer: {adamw: {lr: 0.01}}
schedule: {cosine: {end: 0.1}}
precision: bf16
clip_norm: none
checkpointing: full
global_batch: 64
epochs: 3
eval_batches: 0
memory_limit: 1GiB
transport: mpi
)",
                                             "r.yaml");
  const auto choice = [&](const char* key) { return std::get<Choice>(run.axes.at(key)); };
  EXPECT_EQ(choice("model").options.at("layers"), 2);
  EXPECT_EQ(choice("model").options.at("width"), 768) << "defaults are filled in";
  EXPECT_EQ(choice("strategy").options.at("shard"), "gradients");
  EXPECT_EQ(choice("optimizer").options.at("lr"), 0.01);
  EXPECT_EQ(run.schedule, "cosine(end=0.1)");
  EXPECT_EQ(run.axes.at("precision"), AxisValue(std::string("bf16")));
  EXPECT_EQ(run.axes.at("clip_norm"), AxisValue(0.0));
  EXPECT_EQ(run.axes.at("checkpointing"), AxisValue(int64_t{1}));
  EXPECT_EQ(run.axes.at("global_batch"), AxisValue(int64_t{64}));
  EXPECT_EQ(run.epochs, 3);
  EXPECT_EQ(run.eval_batches, 0);
  EXPECT_EQ(run.memory_limit, int64_t{1} << 30);
  EXPECT_EQ(run.axes.at("transport"), AxisValue(std::string("mpi")));
}

TEST(TrainingRunFile, SaysNothingOfWhatIsNotThere) {
  const TrainingRun run = parse_training_run("description: empty\n", "r.yaml");
  EXPECT_TRUE(run.axes.empty());
  EXPECT_FALSE(run.steps || run.epochs || run.eval_batches || run.memory_limit);
  EXPECT_EQ(run.schedule, "constant");
  EXPECT_EQ(run.warmup, 0);
  EXPECT_EQ(run.seed, 1);
}

TEST(TrainingRunFile, HasOneValueForEachKey) {
  EXPECT_EQ(error_of_run("model: [gpt2, mlp]\n"),
            "r.yaml:1:8: model: a training run has one model, not a list");
  EXPECT_EQ(error_of_run("model: [gpt2]\n"), "r.yaml:1:8: model: a training run has one model, not a list");
  EXPECT_EQ(error_of_run("model: {gpt2: {layers: [1, 2]}}\n"),
            "r.yaml:1:8: model: a training run has one model, not a list");
  EXPECT_EQ(error_of_run("model: mlp\nbatch_size: [1, 2]\n"),
            "r.yaml:2:13: batch_size: a training run has one batch size, not a list");
  EXPECT_EQ(error_of_run("precision: [fp32, bf16]\n"),
            "r.yaml:1:12: precision: a training run has one precision, not a list");
  EXPECT_EQ(error_of_run("schedule: [constant]\n"),
            "r.yaml:1:11: schedule: a training run has one schedule, not a list");
  EXPECT_EQ(error_of_run("batch_size: largest\n"),
            "r.yaml:1:13: batch_size: a training run has no search for the largest batch; write a number");
  EXPECT_EQ(error_of_run("steps: [1, 2]\n"),
            "r.yaml:1:8: steps: expected a whole number from 1 to 1000000000, got a list");
}

TEST(TrainingRunFile, IsAsStrictAsASuite) {
  EXPECT_THAT(
      error_of_run("modl: gpt2\n"),
      HasSubstr(
          "r.yaml:1:1: unknown key 'modl' in the training run; did you mean 'model'? accepted: model, "));
  EXPECT_THAT(error_of_run("ranks: 4\n"), HasSubstr("r.yaml:1:1: unknown key 'ranks' in the training run"));
  EXPECT_THAT(error_of_run("training: {model: mlp}\n"),
              HasSubstr("unknown key 'training' in the training run"));
  EXPECT_EQ(error_of_run("model: mlp\nmodel: mlp\n"), "r.yaml:2:1: key 'model' is given twice; keep one");
  EXPECT_EQ(error_of_run("batch_size: 2\nglobal_batch: 4\n"),
            "r.yaml:2:15: global_batch: there is a batch_size too; write one of them");
  EXPECT_EQ(error_of_run("steps: 2\nepochs: 4\n"),
            "r.yaml:2:9: epochs: there are steps too; write one of them");
  EXPECT_EQ(error_of_run("schedule: linear\n"),
            "r.yaml:1:11: unknown schedule 'linear'; accepted: constant, cosine, step");
  EXPECT_EQ(error_of_run("schedule: step\n"),
            "r.yaml:1:11: schedule step needs option 'every': steps between two drops");
  EXPECT_EQ(error_of_run("steps: 0\n"),
            "r.yaml:1:8: steps: expected a whole number from 1 to 1000000000, got '0'");
  EXPECT_EQ(error_of_run("optimizer: adam\n"),
            "r.yaml:1:12: unknown optimizer 'adam'; did you mean 'adamw'? accepted: adamw, sgd");
  EXPECT_EQ(error_of_run(""),
            "r.yaml:1:1: empty; a training run is a map with 'model' and other keys (see suites/README.md)");
}

TEST(TrainingRunFile, EveryOneOfTheRepositoryIsValidAndNoSuite) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(SHARDMARK_SOURCE_DIR "/suites/train")) {
    EXPECT_TRUE(read_training_run(file.path().string()).axes.contains("model")) << file.path();
    EXPECT_THROW(read_suite(file.path().string()), UsageError) << file.path();
    ++count;
  }
  EXPECT_GE(count, 1u);
  EXPECT_THROW(read_training_run(SHARDMARK_SOURCE_DIR "/suites/quick.yaml"), UsageError);
  EXPECT_THROW(read_training_run("no/such.yaml"), UsageError);
}

// Values that contradict each other are reported with their position in the file and with the keys that the
// file uses.
TEST(TrainingRunFile, SemanticErrorsHaveTheirPlace) {
  const TrainingRun run = parse_training_run(
      "model: mlp\nstrategy: ddp\nglobal_batch: 6\naccumulation: 4\ntensor: 2\ncheckpointing: full\n"
      "schedule: constant\nwarmup: 1\ndata: synthetic\n",
      "r.yaml");
  EXPECT_EQ(located(run, "--strategy: groups of 2 do not divide 1 ranks"),
            "r.yaml:2:11: strategy: groups of 2 do not divide 1 ranks");
  EXPECT_EQ(
      located(run,
              "--global-batch asks for 6 samples a step, which 4 ranks with accumulation 4 cannot share"),
      "r.yaml:3:15: global_batch asks for 6 samples a step, which 4 ranks with accumulation 4 cannot share");
  EXPECT_EQ(located(run, "4 ranks with accumulation 4 cannot share"),
            "r.yaml:4:15: 4 ranks with accumulation 4 cannot share");
  EXPECT_EQ(located(run, "tensor 2 does not cut the 1 kv_heads of llama evenly"),
            "r.yaml:5:9: tensor 2 does not cut the 1 kv_heads of llama evenly");
  EXPECT_EQ(located(run, "checkpointing 3 is too much"), "r.yaml:6:16: checkpointing 3 is too much");
  EXPECT_EQ(
      located(run, "a graph has one learning rate; take --schedule constant and warmup 0, or graph false"),
      "r.yaml:7:11: a graph has one learning rate; take schedule constant and warmup 0, or graph false");
  EXPECT_EQ(located(run, "more data than tensors"), "r.yaml: more data than tensors")
      << "not the keys data, tensor";
  EXPECT_EQ(located(run, "r.yaml:1:1: x"), "r.yaml:1:1: x");
  EXPECT_EQ(located(TrainingRun(), "--strategy: x"), "--strategy: x") << "flags alone";
}

TEST(TrainingRunFile, SetGoesOverTheFile) {
  TrainingRun run =
      parse_training_run("model: mlp\nepochs: 3\nglobal_batch: 6\naccumulation: 4\nwarmup: 7\n", "r.yaml");
  const auto axes =
      take_typed({"accumulation=2", "warmup=1", "steps=5", "scale_lr=true", "deterministic=true",
                  "eval_batches=0", "schedule=cosine(end=0.5)", "batch_size=3", "seed=4"},
                 run);
  EXPECT_EQ(axes.at("accumulation"), AxisValue(int64_t{2}));
  EXPECT_EQ(axes.at("batch_size"), AxisValue(int64_t{3}));
  EXPECT_EQ(axes.size(), 2u) << "not those of the file";
  EXPECT_EQ(run.warmup, 1);
  EXPECT_EQ(run.steps, 5);
  EXPECT_FALSE(run.epochs) << "steps take their place";
  EXPECT_TRUE(run.scale_lr && run.deterministic);
  EXPECT_EQ(run.eval_batches, 0);
  EXPECT_EQ(run.schedule, "cosine(end=0.5)");
  EXPECT_EQ(run.seed, 4);
  EXPECT_EQ(located(run, "warmup 1 is too much"), "r.yaml: warmup 1 is too much")
      << "the file did not say it";
}

TEST(TrainingRunFile, SetSaysWhatIsAccepted) {
  const auto with = [](const std::vector<std::string>& texts) {
    TrainingRun run;
    try {
      take_typed(texts, run);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(with({"warm_up=1"}),
              StartsWith("--set: unknown key 'warm_up'; did you mean 'warmup'? accepted: "));
  EXPECT_EQ(with({"accumulation=[1, 2]"}),
            "--set: accumulation: a training run has one accumulation, not a list");
  EXPECT_EQ(with({"scale_lr=yes"}), "--set: scale_lr: expected true or false, got 'yes'");
  EXPECT_EQ(with({"steps=1", "epochs=1"}), "--set: epochs: there are steps too; write one of them");
  EXPECT_THAT(with({"name=x"}), StartsWith("--set: unknown key 'name'"));
}

}  // namespace
}  // namespace shardmark
