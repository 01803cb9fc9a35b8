// The loads that measure interference between a collective and other work. There are two kinds of
// computation, because a collective slows them down in two ways: a matrix product loses cores (on a GPU, in
// whole waves of its tiles), and a copy loses memory bandwidth. Sources: DeepSpeed-Domino, arXiv 2409.15241;
// ConCCL, arXiv 2412.14335.
#include "strategies/beside.h"

#include "specs/collectives.h"
#include "strategies/choice_kinds.h"

namespace shardmark::strategies {
namespace {

constexpr double kMostSide = 1 << 20, kMostBytes = int64_t{1} << 40;

}  // namespace

const std::map<std::string, BesideSpec>& beside_specs() {
  static const std::map<std::string, BesideSpec> table = {
      {"alone", {"nothing: the collective is all that runs"}},
      {"matmul",
       {"a matrix product [m, k] x [k, n], bound by computing",
        {{"m", OptionType::integer, 1024, "rows", {}, 1, kMostSide},
         {"n", OptionType::integer, 1024, "columns", {}, 1, kMostSide},
         {"k", OptionType::integer, 1024, "terms of a sum", {}, 1, kMostSide},
         {"dtype",
          OptionType::text,
          "float32",
          "type of the elements",
          {"float32", "bfloat16", "float16"}}}}},
      {"copy",
       {"a copy from memory to memory, bound by its bandwidth",
        {{"bytes",
          OptionType::integer,
          int64_t{64} << 20,
          "that are read, and as many that are written",
          {},
          64,
          kMostBytes}}}},
      {"block",
       {"forward and backward of one block of a model",
        {{"model",
          OptionType::choice,
          "gpt2(layers=1)",
          "the model; of its blocks the one in the middle",
          {},
          0,
          0,
          model_kind},
         {"batch", OptionType::integer, 1, "samples", {}, 1, kMostSide}}}},
      {"collective",
       {"another collective, on a communicator of its own",
        {{"operation", OptionType::text, "all_reduce", "which", specs::collective_names()},
         {"bytes", OptionType::integer, int64_t{1} << 20, "its message", {}, 4, kMostBytes}}}}};
  return table;
}

}  // namespace shardmark::strategies
