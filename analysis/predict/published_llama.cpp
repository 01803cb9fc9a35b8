// Llama models on nodes of 8 H100: rows as their sources print them. Rates are NVIDIA's, latencies NCCL's
// (specs/link.cpp).
#include <fmt/format.h>

#include "analysis/predict/published_scaling.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr int64_t kGpusPerNode = 8;

PublishedScaling on_h100(const std::string& name, const std::string& source, const std::string& assumed) {
  return {
      name, source, assumed, kGpusPerNode, specs::link_from_text("nvlink4"), specs::link_from_text("ndr400"),
      {}};
}

// The models of the playbook's script: as many heads of keys and values as of queries, 131,072 words.
struct Shape {
  const char* name;
  const char* options;
};
constexpr Shape k1B{"1B", "layers=16, width=2048, heads=32, kv_heads=32, inner=8192, tied=true"};
constexpr Shape k3B{"3B", "layers=28, width=3072, heads=32, kv_heads=32, inner=8192, tied=true"};
constexpr Shape k8B{"8B", "layers=32, width=4096, heads=32, kv_heads=32, inner=14336, tied=false"};

constexpr int64_t kSequence = 4096, kGlobalBatch = 256;

std::string job_of(const Shape& shape) { return fmt::format("Llama {}", shape.name); }

Point playbook_point(const Shape& shape, int64_t ranks, int64_t micro_batch, int zero) {
  const std::string model =
      fmt::format("llama({}, sequence={}, vocabulary=131072)", shape.options, kSequence);
  Point point =
      published_point(model, zero == 0 ? "ddp" : "fsdp(shard=optimizer)", "adamw", ranks, micro_batch);
  point.training.precision = "bf16";
  point.training.reduce_dtype = "fp32";
  point.training.accumulation = kGlobalBatch / (ranks * micro_batch);
  return point;
}

// A row of data parallelism alone (tp = pp = 1): ZeRO stage, tokens/s of a GPU, its memory.
struct PlaybookRow {
  int64_t ranks;
  int zero;
  double tokens_per_s, memory_gib;
};

PublishedScaling playbook(const Shape& shape, int64_t micro_batch, const std::vector<PlaybookRow>& rows) {
  PublishedScaling published = on_h100(
      fmt::format("Llama {}, micro-batch {}, on H100", shape.name, micro_batch),
      "Hugging Face, ultra-scale playbook, benchmarks of nanotron (huggingface/nanotron, "
      "scripts/scaling_benchmarks.py; 0e0a27e): 256 sequences of 4,096 tokens a step, by ZeRO stage 0 or 1",
      "gradients reduced in fp32 once a step (nanotron's default); nothing recomputed; each GPU with 400 "
      "Gb/s "
      "across; GB are 2^30 bytes");
  published.job = job_of(shape);
  for (const PlaybookRow& row : rows) {
    const auto tokens = static_cast<double>(kGlobalBatch * kSequence / row.ranks);
    published.rows.push_back({playbook_point(shape, row.ranks, micro_batch, row.zero),
                              format_count(row.tokens_per_s) + " tokens/s a GPU", tokens / row.tokens_per_s,
                              row.memory_gib * 0x1p30});
  }
  return published;
}

PublishedScaling torchtitan(const std::string& how, double on_8, double on_128) {
  PublishedScaling published = on_h100("Llama 3.1 8B, " + how + ", on H100 96GB",
                                       "pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md "
                                       "(31a17bf), tables 1 and 3: FSDP2, bf16, "
                                       "400 Gb/s per GPU",
                                       "gradients reduced in fp32; selective recomputation is in the "
                                       "computing time of the first row, so memory "
                                       "is not predicted");
  for (const auto& [ranks, tokens_per_s] : {std::pair(8, on_8), {128, on_128}}) {
    Point point = published_point("llama_8b", "fsdp", "adamw", ranks, 2);
    point.training.precision = "bf16";
    point.training.reduce_dtype = "fp32";
    point.training.clip_norm = 1;
    published.rows.push_back(
        {point, format_count(tokens_per_s) + " tokens/s a GPU", 2 * 8192 / tokens_per_s});
  }
  return published;
}

PublishedScaling dgxc() {
  PublishedScaling published = on_h100(
      "Llama 3.1 8B, context parallel 2, on H100",
      "NVIDIA/dgxc-benchmarking 24.09: bf16, micro-batch 1, 32 micro-batches, sequence 8,192", "nothing");
  published.unpredicted = "two GPUs share each sequence (context parallelism), which no strategy here does";
  for (const auto& [ranks, seconds] :
       {std::pair(8, 12.91), {16, 13.00}, {32, 13.05}, {64, 13.08}, {128, 13.10}}) {
    Point point = published_point("llama_8b", "fsdp(shard=optimizer)", "adamw", ranks, 1);
    point.training.precision = "bf16";
    point.training.accumulation = 32;
    published.rows.push_back({point, fmt::format("{:.2f} s", seconds), seconds});
  }
  return published;
}

}  // namespace

std::vector<PublishedScaling> published_llamas() {
  return {playbook(k1B, 1,
                   {{8, 0, 39273, 36.7},
                    {8, 1, 39006, 24.2},
                    {16, 0, 37610, 36.7},
                    {16, 1, 37698, 24.0},
                    {32, 0, 35368, 36.7},
                    {32, 1, 35951, 23.8},
                    {64, 0, 31112, 36.7},
                    {64, 1, 31297, 23.8},
                    {128, 0, 24494, 36.7},
                    {128, 1, 22042, 23.7},
                    {256, 0, 15700, 36.6},
                    {256, 1, 11327, 21.7}}),
          playbook(k1B, 2,
                   {{8, 0, 40150, 50.2},
                    {16, 1, 38840, 35.0},
                    {32, 1, 36990, 34.9},
                    {64, 0, 16057, 50.2},
                    {64, 1, 30842, 34.8},
                    {128, 0, 26446, 48.5},
                    {128, 1, 22794, 30.8}}),
          playbook(k3B, 1,
                   {{8, 1, 16341, 50.8},
                    {16, 1, 15795, 49.1},
                    {32, 1, 15044, 48.1},
                    {64, 1, 13312, 47.7},
                    {128, 1, 9911, 47.6}}),
          playbook(k3B, 2,
                   {{8, 1, 15997, 69.8},
                    {16, 1, 16385, 65.0},
                    {32, 1, 15387, 62.9},
                    {64, 1, 13310, 64.3},
                    {128, 1, 10116, 64.3}}),
          torchtitan("eager", 5762, 5605),
          torchtitan("torch.compile", 6667, 6514),
          dgxc()};
}

// Those of which no other row with the same layout finished; why they did not is not said.
std::vector<std::pair<std::string, Point>> published_failures() {
  struct Failure {
    int64_t ranks, micro_batch;
    int zero;
  };
  std::vector<std::pair<std::string, Point>> failures;
  const auto add = [&](const Shape& shape, const std::vector<Failure>& of) {
    for (const Failure& failed : of)
      failures.emplace_back(job_of(shape),
                            playbook_point(shape, failed.ranks, failed.micro_batch, failed.zero));
  };
  add(k1B, {{32, 4, 0}, {32, 8, 0}, {64, 4, 0}});
  add(k3B, {{8, 1, 0},
            {16, 1, 0},
            {32, 1, 0},
            {32, 4, 0},
            {32, 8, 0},
            {64, 1, 0},
            {64, 2, 0},
            {64, 4, 0},
            {128, 1, 0},
            {128, 2, 0}});
  add(k8B, {{8, 1, 0},
            {8, 1, 1},
            {16, 1, 0},
            {16, 1, 1},
            {32, 1, 0},
            {32, 1, 1},
            {32, 4, 0},
            {32, 8, 0},
            {64, 1, 0},
            {64, 1, 1},
            {64, 2, 0},
            {64, 4, 0}});
  return failures;
}

}  // namespace shardmark
