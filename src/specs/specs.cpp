// The tables of names that a suite may use: data sources, optimizers, transports, element types.
#include "specs/specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace shardmark::specs {
namespace {

constexpr int64_t kMostToken = (int64_t{1} << 32) - 1;
constexpr int64_t kMostSamples = int64_t{1} << 40;  // far more than in any epoch
// Adam's bias correction divides by 1 - beta^t, which is zero for 1 and for what a float rounds to 1.
constexpr double kMostBeta = 0.999999;

std::string fits_all(const SampleShape&) { return {}; }

std::string takes_tokens(const SampleShape& sample) {
  return sample.kind == SampleShape::Kind::tokens ? "" : "the model takes no tokens";
}

std::string takes_bytes(const SampleShape& sample) {
  if (sample.kind == SampleShape::Kind::tokens && sample.num_classes < 256)
    return "a byte needs a vocabulary of 256, the model's is " + std::to_string(sample.num_classes);
  return takes_tokens(sample);
}

std::string takes_cifar10(const SampleShape& sample) {
  if (sample.kind != SampleShape::Kind::image || sample.input != std::vector<int64_t>{3, 32, 32})
    return "the model takes no images of 3 x 32 x 32";
  if (sample.num_classes < 10)
    return "CIFAR-10 has 10 classes, the model has " + std::to_string(sample.num_classes);
  return {};
}

constexpr const char* kPatterns = "patterns from the working directory, or else from the suite's folder: ";

std::string patterns_of_files(const Options& options) { return options.at("files").get<std::string>(); }

// A name that ends with neither .bin nor .idx is the common prefix of a Megatron-LM dataset.
std::string patterns_of_token_files(const Options& options) {
  std::istringstream words(patterns_of_files(options));
  std::string patterns;
  for (std::string word; words >> word;)
    patterns += word + (word.ends_with(".bin") || word.ends_with(".idx") ? " " : ".bin ");
  return patterns;
}

// The tensors of optimizer state for each parameter: the velocity, which exists only with momentum; and for
// Adam the first and second moments.
int64_t sgd_state(const Options& options) { return options.at("momentum").get<double>() == 0 ? 0 : 1; }
int64_t adamw_state(const Options&) { return 2; }

}  // namespace

const std::map<std::string, DataSpec>& data_specs() {
  static const std::map<std::string, DataSpec> table = {
      {"synthetic",
       {"synthetic samples for any model, learnable",
        {{"size", OptionType::integer, 4096, "samples in an epoch", {}, 1, kMostSamples}},
        fits_all}},
      {"cifar10",
       {"CIFAR-10's training set, its binary files",
        {{"dir", OptionType::text, "data/cifar-10-batches-bin",
          "folder of data_batch_1.bin to data_batch_5.bin"},
         {"augment", OptionType::boolean, true, "random crop and flip"}},
        takes_cifar10,
        [](const Options& options) {
          return options.at("dir").get<std::string>() + "/data_batch_[1-5].bin";
        }}},
      {"tokens",
       {"token files of llm.c (.bin) and Megatron-LM (.bin with .idx)",
        {{"files", OptionType::text, nullptr,
          std::string(kPatterns) +
              "\"fineweb10B/fineweb_train_*.bin\"; of Megatron-LM either file, or the prefix of both"},
         {"documents",
          OptionType::text,
          "joined",
          "joined: as one text; packed: positions restart at each; masked: and attention stays inside",
          {"joined", "packed", "masked"}},
         {"begin",
          OptionType::integer,
          -1,
          "token that each document begins with, as llm.c has 50256 (GPT-2) or 128000 (Llama 3); -1: none",
          {},
          -1,
          kMostToken},
         {"end",
          OptionType::integer,
          -1,
          "token that each document ends with; with neither Megatron-LM's index tells; -1: none",
          {},
          -1,
          kMostToken}},
        takes_tokens,
        patterns_of_token_files}},
      {"text",
       {"the bytes of text files, one token per byte",
        {{"files", OptionType::text, nullptr, std::string(kPatterns) + "\"texts/*.txt\""}},
        takes_bytes,
        patterns_of_files}},
  };
  return table;
}

bool masks_documents(const Choice& data) {
  const OptionValue* const documents = data.name == "tokens" ? data.options.find("documents") : nullptr;
  return documents != nullptr && *documents == "masked";
}

const std::map<std::string, OptimizerSpec>& optimizer_specs() {
  static const std::map<std::string, OptimizerSpec> table = {
      {"sgd",
       {"stochastic gradient descent with momentum",
        {{"lr", OptionType::number, 0.01, "learning rate", {}, 0},
         {"momentum", OptionType::number, 0.9, "of the velocity; 0 keeps no state", {}, 0, 1},
         {"weight_decay", OptionType::number, 5e-4, "added to the gradient, times the parameter", {}, 0}},
        sgd_state}},
      {"adamw",
       {"Adam with decoupled weight decay",
        {{"lr", OptionType::number, 3e-4, "learning rate", {}, 0},
         {"beta1", OptionType::number, 0.9, "decay of the first moment", {}, 0, kMostBeta},
         {"beta2", OptionType::number, 0.95, "decay of the second moment", {}, 0, kMostBeta},
         {"eps", OptionType::number, 1e-8, "added to the denominator", {}, 0},
         {"weight_decay", OptionType::number, 0.1, "of the parameter per step, times lr", {}, 0}},
        adamw_state}},
  };
  return table;
}

const std::map<std::string, TransportSpec>& transport_specs() {
  static const std::map<std::string, TransportSpec> table = {
      {"pt2pt", {"shardmark's own collectives over MPI's point-to-point messages; the default without GPUs"}},
      {"mpi", {"the MPI library's own collectives, such as MPI_Allreduce"}},
      {"nccl", {"NCCL between GPUs; the default with GPUs"}},
      {"hierarchical",
       {"the default transport with all-reduce in stages: within the node, between nodes, within the node",
        {{"form",
          OptionType::text,
          "sharded",
          "reduce-scatter, all-reduce, all-gather; or reduce to a leader, all-reduce, broadcast",
          {"sharded", "leader"}},
         {"ranks_per_node", OptionType::integer, 0, "0: those that share memory", {}, 0, 1 << 20}}}},
  };
  return table;
}

const std::map<std::string, SaveSpec>& save_specs() {
  static const OptionTable options = {
      {"folder", OptionType::text, ".", "where the files are written, which all ranks must be able to read"},
      {"sync", OptionType::boolean, true, "whether a write ends only when the files are on the disk (fsync)"},
      {"async", OptionType::boolean, false,
       "whether ranks copy their state to host memory and train on while a thread writes it"}};
  static const std::map<std::string, SaveSpec> table = {
      {"none", {"no checkpoints"}},
      {"full", {"rank 0 gathers the whole state and writes one file, as train --checkpoint does", options}},
      {"sharded", {"each rank writes what it owns to a file of its own", options}},
  };
  return table;
}

const std::map<std::string, ProductsSpec>& products_specs() {
  static const std::map<std::string, ProductsSpec> table = {
      {"compute", {"in the precision of the arithmetic"}},
      {"fp8",
       {"matrices are scaled, rounded to 8-bit floating point and multiplied: the linear layers and experts "
        "of "
        "transformer blocks; embedding, head, router and norms keep the precision",
        {{"scaling",
          OptionType::text,
          "tensor",
          "tensor: one scale for each matrix; row: one for each row of the left and column of the right one; "
          "block: a power of two for each 32 numbers of these (MXFP8)",
          {"tensor", "row", "block"}},
         {"gradients",
          OptionType::text,
          "e5m2",
          "type of the gradients of outputs; all other matrices are e4m3",
          {"e5m2", "e4m3"}}}}}};
  return table;
}

const OptionTable& transport_options(const std::string& name) {
  const auto found = transport_specs().find(name);
  if (found == transport_specs().end())
    throw UsageError("unknown transport '" + name + "'; known: hierarchical, mpi, nccl, pt2pt");
  return found->second.options;
}

const std::vector<std::string>& reduction_names() {
  static const std::vector<std::string> names = {"sum", "average", "min", "max"};
  return names;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = {"float32", "float16", "bfloat16", "float64", "int32"};
  return names;
}

int64_t dtype_bytes(const std::string& dtype) {
  static const std::map<std::string, int64_t> bytes = {
      {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"float64", 8}, {"int32", 4}};
  return bytes.at(dtype);
}

const std::vector<PrecisionSpec>& precision_specs() {
  static const std::vector<PrecisionSpec> table = {
      {"fp32", 4, 4, "32-bit everywhere"},
      {"tf32", 4, 4, "32-bit; matrix products round their inputs to 10 bits (NVIDIA, Ampere and later)"},
      {"bf16", 2, 4, "blocks compute in bfloat16 on a copy of 32-bit weights"},
      {"fp16", 2, 4, "blocks compute in float16 on a copy of 32-bit weights; the loss is scaled"},
      {"fp64", 8, 8, "64-bit everywhere"}};
  return table;
}

const PrecisionSpec& precision_spec(const std::string& name) {
  const auto& all = precision_specs();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& spec) { return spec.name == name; });
  ENSURE(found != all.end(), "no such precision: " + name);
  return *found;
}

const std::vector<std::string>& reduce_dtype_names() {
  static const std::vector<std::string> names = {"same", "fp32"};
  return names;
}

ElementBytes element_bytes(const std::string& precision, const std::string& reduce_dtype) {
  const PrecisionSpec& spec = precision_spec(precision);
  return {spec.compute_bytes, spec.master_bytes,
          reduce_dtype == "same" ? spec.compute_bytes : spec.master_bytes,
          /*scaled=*/precision == "fp16"};
}

std::string documents_reason(const Choice& data, const SampleShape& sample) {
  if (data.name != "tokens") return {};
  for (const char* const option : {"begin", "end"})
    if (const auto token = data.options.at(option).get<int64_t>(); token >= sample.num_classes)
      return fmt::format(
          "{} {} is not in the model's vocabulary of {}, so that no document {}s with it; name a token of "
          "the files' tokenizer, or set the model's option 'vocabulary' above it",
          option, token, sample.num_classes, option);
  return {};
}

const std::map<std::string, LRSchedulerSpec>& lr_scheduler_specs() {
  static const std::map<std::string, LRSchedulerSpec> table = {
      {"constant", {"the same rate throughout", {}}},
      {"cosine",
       {"half a cosine from the peak down",
        {{"end", OptionType::number, 0.0, "rate at the end, as a part of the peak", {}, 0, 1}},
        /*by_length=*/true}},
      {"step",
       {"multiplied by a factor at a fixed interval of steps",
        {{"every", OptionType::integer, nullptr, "steps between two drops", {}, 1},
         {"factor", OptionType::number, 0.1, "of each drop", {}, 0, 1}}}},
  };
  return table;
}

}  // namespace shardmark::specs
