// Measures the overhead of the harness and of the strategies. A plain LibTorch loop, `single` and all other
// strategies take turns of two steps each, in one process per rank, so that a machine that slows down affects
// all of them. Prints for each the median ratio of its turn to the turn of its base in the same round.
//   make overhead [RANKS=2] [LAUNCHES=5]
#include <fmt/format.h>

#include <map>

#include "base/stats.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "device/timeline.h"
#include "executor/training_setup.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr int kRounds = 12;
constexpr int kStepsPerTurn = 2;
constexpr int64_t kBatchSize = 4;

const Choice kAdamW{"adamw",
                    {{"lr", 3e-4}, {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}}};

Choice gpt2() {
  const Choice small{"gpt2",
                     {{"layers", 4}, {"width", 256}, {"heads", 4}, {"sequence", 128}, {"vocabulary", 8192}}};
  return resolve(small, specs::model_spec("gpt2").options, "model");
}

Batch make_batch(const Model& model, const HostGroup& world) {
  const auto source = make_source({"synthetic", {{"size", 64}}}, {model.table().sample, model.dtype(), 1});
  return source->fetch(DistributedSampler(64, world.size(), world.rank(), kBatchSize, 1, 1).draw(0, 0));
}

class Contender {
 public:
  virtual ~Contender() = default;
  virtual void step() = 0;
};

// Training as somebody would write it by hand: one autograd graph, separate parameters, and the fused
// optimizer.
class Plain final : public Contender {
 public:
  explicit Plain(const HostGroup& world)
      : model_(make_model(gpt2(), at::kFloat, at::kCPU)), batch_(make_batch(*model_, world)) {
    materialize(*model_, 1);
    for (const auto& group : model_->table().groups) {
      for (const auto& spec : group.parameters) {
        at::Tensor& parameter = model_->parameter(spec.name);
        parameter.mutable_grad() = at::zeros_like(parameter);
        shards_.push_back({parameter.detach().view(-1), parameter.grad().view(-1)});
      }
    }
    optimizer_ = make_optimizer(kAdamW, shards_, at::kCPU);
  }
  void step() override {
    at::Tensor h = batch_.inputs;
    for (const auto& block : model_->blocks()) h = block.forward(h, batch_);
    torch::autograd::backward({h}, {});
    optimizer_->step({});
    for (auto& shard : shards_) shard.gradients.zero_();
  }

 private:
  std::unique_ptr<Model> model_;
  Batch batch_;
  std::vector<OptimizerShard> shards_;
  std::unique_ptr<Optimizer> optimizer_;
};

class Harnessed final : public Contender {
 public:
  Harnessed(const std::string& text, const HostGroup& world)
      : comm_(make_communicator("mpi", world, at::kCPU)),
        point_(point_of(choice_from_text(text), world.size())),
        setup_(point_, *comm_) {
    setup_.allocate();
    setup_.state->publish();
    batch_ = make_batch(*setup_.model, world);
    comm_->set_timeline(&setup_.executor->recorder().timeline());
  }
  ~Harnessed() override {
    comm_->set_timeline(nullptr);
  }  // the recorder is destroyed before operations that are in flight
  void step() override {
    Executor& executor = *setup_.executor;
    executor.step([this] { return batch_; });
    executor.recorder().end();
    executor.recorder().take();
    if (executor.failure()) std::rethrow_exception(executor.failure());
  }

 private:
  static Point point_of(const Choice& strategy, int64_t ranks) {
    Point point;
    point.workload = "training";
    point.ranks = ranks;
    point.training.model = gpt2();
    point.training.strategy = resolve(strategy, strategies::strategy(strategy.name).options, "strategy");
    point.training.optimizer = kAdamW;
    return point;
  }
  std::unique_ptr<Communicator> comm_;
  Point point_;
  TrainingSetup setup_;
  Batch batch_;
};

// Returns the seconds of a turn on the slowest rank.
double turn_s(Contender& contender, const HostGroup& world) {
  world.barrier();
  const double begin = now_s();
  for (int i = 0; i < kStepsPerTurn; ++i) contender.step();
  return world.max(now_s() - begin);
}

int run() {
  const MpiSession session;
  const HostGroup world = HostGroup::world();
  std::vector<std::pair<std::string, std::unique_ptr<Contender>>> contenders;
  contenders.emplace_back("plain", std::make_unique<Plain>(world));
  for (const char* strategy :
       {"single", "ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "zero3"})
    contenders.emplace_back(strategy, std::make_unique<Harnessed>(strategy, world));

  std::map<std::string, std::vector<double>> ratios;
  for (int round = -1; round < kRounds; ++round) {  // the first round is a warm-up
    std::map<std::string, double> turns;
    for (size_t i = 0; i < contenders.size(); ++i) {
      auto& [name, contender] = contenders[(i + static_cast<size_t>(round + 1)) % contenders.size()];
      turns[name] = turn_s(*contender, world);
    }
    if (round < 0) continue;
    for (const auto& [name, seconds] : turns)
      ratios[name].push_back(seconds / turns.at(name == "single" ? "plain" : "single"));
  }
  ratios.erase("plain");
  if (world.rank() == 0)
    for (const auto& [name, values] : ratios)
      fmt::print("{} / {}\t{:.4f}\n", name, name == "single" ? "plain LibTorch" : "single", median(values));
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace shardmark

int main() { return shardmark::run(); }
