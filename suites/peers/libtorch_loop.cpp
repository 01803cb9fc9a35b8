// Trains one of our models with a plain LibTorch loop: one autograd graph, separate parameters, the fused
// optimizer, no harness and no strategy. Prints one line of JSON, like train_peer.py. In bf16, the model is
// in bf16 with a copy of the weights in fp32.
//   build/shardmark_libtorch_loop MODEL BATCH fp32|bf16 cpu|cuda WARMUP STEPS
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "data/loader.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "executor/optim/optimizer.h"
#include "models/initial.h"

namespace shardmark {
namespace {

constexpr int64_t kSamples = 4096 - 4096 / 20;  // `shardmark train` holds out the last twentieth
constexpr int64_t kSeed = 1;
constexpr int64_t kCompared = 8;  // number of batches; later steps start again with the first

const Choice adamw{"adamw",
                   {{"lr", 3e-4}, {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}}};

class Loop {
 public:
  Loop(const std::string& model, int64_t batch_size, bool mixed, at::Device device)
      : device_(device),
        model_(make_model(resolve(choice_from_text(model),
                                  specs::model_spec(choice_from_text(model).name).options, "model"),
                          mixed ? at::kBFloat16 : at::kFloat, device)) {
    materialize(*model_, kSeed);
    std::vector<OptimizerShard> shards;
    for (const auto& group : model_->table().groups) {
      for (const auto& spec : group.parameters) {
        at::Tensor& parameter = model_->parameter(spec.name);
        parameter.mutable_grad() = at::zeros_like(parameter);
        own_.push_back({parameter.detach().view(-1), parameter.grad().view(-1)});
        const auto initial = initial_value(spec, kSeed, at::kFloat).to(device).view(-1);
        shards.push_back(mixed ? OptimizerShard{initial, at::zeros_like(initial)} : own_.back());
      }
    }
    if (mixed) masters_ = shards;
    optimizer_ = make_optimizer(adamw, shards, device);
    const auto source =
        make_source({"synthetic", {{"size", kSamples}}}, {model_->table().sample, model_->dtype(), kSeed});
    const DistributedSampler sampler(kSamples, 1, 0, batch_size, 1, kSeed);
    for (int64_t step = 0; step < kCompared; ++step)
      batches_.push_back(source->fetch(sampler.draw(step, 0), device.is_cuda()));
  }

  // Runs a step and returns the loss, which is still on the device.
  at::Tensor step(size_t number) {
    const Batch& from = batches_[number % batches_.size()];
    const Batch batch{from.inputs.to(device_, true), from.targets.to(device_, true)};
    at::Tensor h = batch.inputs;
    for (const auto& block : model_->blocks()) h = block.forward(h, batch);
    torch::autograd::backward({h}, {});
    for (size_t i = 0; i < masters_.size(); ++i) masters_[i].gradients.copy_(own_[i].gradients);
    optimizer_->step({});
    for (size_t i = 0; i < masters_.size(); ++i) own_[i].parameters.copy_(masters_[i].parameters);
    for (auto& shard : own_) shard.gradients.zero_();
    return h.detach();
  }

 private:
  at::Device device_;
  std::unique_ptr<Model> model_;
  std::vector<OptimizerShard> own_, masters_;  // [parameter]; masters_ is empty without mixed precision
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Batch> batches_;
};

int run(const std::vector<std::string>& words) {
  if (words.size() != 6) {
    fmt::print(stderr, "usage: shardmark_libtorch_loop MODEL BATCH fp32|bf16 cpu|cuda WARMUP STEPS\n");
    return EXIT_FAILURE;
  }
  const at::Device device = words[3] == "cuda" ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  const auto warmup = static_cast<size_t>(std::stoll(words[4])),
             count = warmup + static_cast<size_t>(std::stoll(words[5])) + 1;
  use_device(device);
  Loop loop(words[0], std::stoll(words[1]), words[2] == "bf16", device);
  Timeline timeline(device);
  std::vector<at::Tensor> losses;
  timeline.mark();
  for (size_t i = 0; i < count; ++i) {
    losses.push_back(loop.step(i));
    timeline.mark();
  }
  const auto marks = timeline.resolve();
  std::vector<double> seconds, first;
  for (size_t i = warmup; i + 1 < count; ++i) seconds.push_back(marks[i + 1].at_s - marks[i].at_s);
  for (size_t i = 0; i < count && i < kCompared; ++i) first.push_back(losses[i].item<double>());
  fmt::print("{}\n", nlohmann::json{{"step_s", median(seconds)},
                                    {"steps_s", seconds},
                                    {"losses", first},
                                    {"peak_bytes", meter::read().peak}}
                         .dump());
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace shardmark

int main(int argc, char** argv) {
  try {
    return shardmark::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return EXIT_FAILURE;
  }
}
