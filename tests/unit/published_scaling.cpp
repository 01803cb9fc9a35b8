// The published rows, as their sources print them. Rates are data sheets', each way: NVIDIA's of A100 and
// V100, the networks' as the sources name them. Latencies are those that NCCL counted with then (2.14,
// src/graph/tuning.cc: a ring step of protocol Simple over NVLink and over a network).
#include "published_scaling.h"

#include <fmt/format.h>

#include "base/units.h"
#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

Choice resolved(const std::string& text, const OptionTable& (*options)(const std::string&)) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, options(choice.name), "choice");
}
const OptionTable& model_options(const std::string& name) { return specs::model_spec(name).options; }
const OptionTable& strategy_options(const std::string& name) { return strategies::strategy(name).options; }
const OptionTable& optimizer_options(const std::string& name) {
  return specs::optimizer_specs().at(name).options;
}

}  // namespace

Point published_point(const std::string& model, const std::string& strategy, const std::string& optimizer,
                      int64_t ranks, int64_t batch_size) {
  Point point;
  point.workload = "training";
  point.ranks = ranks;
  TrainingPoint& t = point.training;
  t.model = resolved(model, model_options);
  t.strategy = resolved(strategy, strategy_options);
  t.optimizer = resolved(optimizer, optimizer_options);
  t.batch_size = batch_size;
  return point;
}

namespace {

// llm-foundry's tables: a row is one size of the world, "T/s/GPU".
struct TokenRow {
  int64_t ranks, accumulation;
  double tokens_per_s;  // of a GPU
};

PublishedScaling llm_foundry(const std::string& name, const std::string& model, int64_t batch_size,
                             const std::vector<TokenRow>& rows) {
  PublishedScaling published{
      name,
      "mosaicml/llm-foundry, scripts/train/benchmarking/README.md (8c8dd48), A100 40GB with 1600 Gbps "
      "node-node interconnect (RoCE): FULL_SHARD, parameters and gradients moved in bf16",
      "8 GPUs a node, each with an eighth of the 1600 Gb/s; one gradient reduction a micro-batch",
      8,
      specs::link_from_text("nvlink3"),
      specs::link_from_text("RoCE=9.6us,25GB/s"),
      {}};
  for (const TokenRow& row : rows) {
    Point point = published_point(model, "fsdp", "adamw", row.ranks, batch_size);
    TrainingPoint& t = point.training;
    t.precision = "bf16";
    t.clip_norm = 1;
    t.accumulation = row.accumulation;
    const auto sequence = t.model.options.at("sequence").get<int64_t>();
    const auto tokens = static_cast<double>(batch_size * row.accumulation * sequence);
    published.rows.push_back(
        {point, format_count(row.tokens_per_s) + " tokens/s a GPU", tokens / row.tokens_per_s});
  }
  return published;
}

PublishedScaling resnet50() {
  PublishedScaling published{
      "ResNet-50 on V100",
      "pytorch/pytorch, benchmarks/distributed/ddp/README.md (bf69c14): medians of seconds per iteration, "
      "8 V100 a node joined by NVLink, 4 x 100 Gb InfiniBand; the first row without DDP",
      "float32; all of a V100's NVLinks usable at once; each GPU with an eighth of the 400 Gb/s",
      8,
      specs::link_from_text("nvlink2=3.4us,150GB/s"),
      specs::link_from_text("EDR=9.6us,6.25GB/s"),
      {}};
  struct Row {
    const char* strategy;
    int64_t ranks;
    double seconds;
  };
  for (const Row& row : std::vector<Row>{{"single", 1, 0.097},
                                         {"ddp", 1, 0.100},
                                         {"ddp", 2, 0.103},
                                         {"ddp", 4, 0.103},
                                         {"ddp", 8, 0.104},
                                         {"ddp", 16, 0.104}}) {
    Point point = published_point("resnet(layers=50)", row.strategy, "sgd", row.ranks, 32);
    published.rows.push_back({point, fmt::format("{:.3f} s", row.seconds), row.seconds});
  }
  return published;
}

}  // namespace

const std::vector<PublishedScaling>& published_scalings() {
  static const std::vector<PublishedScaling> all = [] {
    std::vector<PublishedScaling> known = {
        llm_foundry("GPT 125M on A100 40GB",
                    "gpt2(layers=12, width=768, heads=12, sequence=2048, vocabulary=50368)", 26,
                    {{8, 3, 136334}, {16, 1, 130535}, {32, 1, 127122}, {64, 1, 125234}, {128, 1, 123936}}),
        llm_foundry("GPT 760M on A100 40GB",
                    "gpt2(layers=24, width=1536, heads=12, sequence=2048, vocabulary=50368)", 12,
                    {{8, 4, 30173}, {16, 1, 29607}, {32, 1, 29648}, {64, 1, 29344}, {128, 1, 28940}}),
        resnet50()};
    for (PublishedScaling& llama : published_llamas()) known.push_back(std::move(llama));
    return known;
  }();
  return all;
}

}  // namespace shardmark
