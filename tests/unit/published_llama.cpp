// Llama models on nodes of 8 H100: rows as their sources print them. Rates are NVIDIA's, latencies NCCL's
// (specs/link.cpp).
#include <fmt/format.h>

#include "base/units.h"
#include "published_scaling.h"

namespace shardmark {
namespace {

constexpr int64_t kGpusPerNode = 8;

PublishedScaling on_h100(const std::string& name, const std::string& source, const std::string& assumed) {
  return {
      name, source, assumed, kGpusPerNode, specs::link_from_text("nvlink4"), specs::link_from_text("ndr400"),
      {}};
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
  PublishedScaling published =
      on_h100("Llama 3.1 8B, context parallel 2, on H100",
              "NVIDIA/dgxc-benchmarking 24.09: bf16, micro-batch 1, 32 micro-batches, sequence 8,192",
              "neighbours share a sequence; the optimizer's state is sharded over all others");
  for (const auto& [ranks, seconds] :
       {std::pair(8, 12.91), {16, 13.00}, {32, 13.05}, {64, 13.08}, {128, 13.10}}) {
    Point point = published_point("llama_8b", "fsdp(shard=optimizer)", "adamw", ranks, 1);
    point.training.precision = "bf16";
    point.training.context = 2;
    point.training.accumulation = 32;
    published.rows.push_back({point, fmt::format("{:.2f} s", seconds), seconds});
  }
  return published;
}

}  // namespace

std::vector<PublishedScaling> published_llamas() {
  return {torchtitan("eager", 5762, 5605), torchtitan("torch.compile", 6667, 6514), dgxc()};
}

}  // namespace shardmark
