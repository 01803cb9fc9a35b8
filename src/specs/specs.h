// The names that a suite may use for data sources, optimizers, learning-rate schedules, precisions and
// transports, with their options.
// Models, strategies and collectives have tables of their own (model_table.h, strategies/strategy.h,
// collectives.h).
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"
#include "schema/point.h"
#include "specs/element_bytes.h"
#include "specs/model_table.h"

namespace shardmark::specs {

struct DataSpec {
  std::string description;
  OptionTable options;
  // Why a model that takes such samples cannot train on this data. Empty if it can. It does not look into
  // files, which data/ does.
  std::string (*mismatch)(const SampleShape& sample);
  // The patterns of the files that it reads, separated by blanks. Empty if it reads none.
  std::string (*files)(const Options& options) = [](const Options&) { return std::string(); };
};
struct OptimizerSpec {
  std::string description;
  OptionTable options;
  int64_t (*state_elements)(const Options& options);  // per parameter
};
// The bytes of an element by its use. master and compute differ in mixed precision.
struct PrecisionSpec {
  std::string name;
  int64_t compute_bytes;  // weights and gradients as blocks use them, activations
  int64_t master_bytes;   // what the optimizer updates, its gradients and its state
  std::string description;
};
struct TransportSpec {
  std::string description;
  OptionTable options = {};
};
// How the checkpoints of a training point are written (the axis `save`).
struct SaveSpec {
  std::string description;
  OptionTable options = {};
};
// In which type a language model multiplies the matrices of its blocks (the axis `products`).
struct ProductsSpec {
  std::string description;
  OptionTable options = {};
};
// What transport mpi can do with the memory of the devices in use. blocking: all but training and what
// overlaps, because Open MPI's non-blocking reductions do not take GPU memory. The strictest is last.
enum class MpiServes { everything, blocking, nothing };

const std::map<std::string, DataSpec>& data_specs();  // synthetic, cifar10, tokens, text
bool masks_documents(const Choice& data);  // whether attention stays inside the documents of a sample
const std::map<std::string, OptimizerSpec>& optimizer_specs();  // sgd, adamw
const std::map<std::string, TransportSpec>& transport_specs();  // pt2pt, mpi, nccl, hierarchical
// Throws UsageError, which lists the known ones.
const OptionTable& transport_options(const std::string& name);
const std::map<std::string, SaveSpec>& save_specs();          // none, full, sharded
const std::map<std::string, ProductsSpec>& products_specs();  // compute, fp8
const std::vector<std::string>& reduction_names();            // sum, average, min, max
const std::vector<std::string>& dtype_names();                // float32, float16, bfloat16, float64, int32
int64_t dtype_bytes(const std::string& dtype);
const std::vector<PrecisionSpec>& precision_specs();   // fp32, tf32, bf16, fp16, fp64
const std::vector<std::string>& reduce_dtype_names();  // same, fp32
const PrecisionSpec& precision_spec(const std::string& name);
ElementBytes element_bytes(const std::string& precision, const std::string& reduce_dtype);

// Why the tokens that the data source's options name cannot begin or end a document, for a model that takes
// such samples, in one line. Empty if they can.
std::string documents_reason(const Choice& data, const SampleShape& sample);

// A learning-rate schedule. executor/optim/lr_scheduler.h computes the rates.
struct LRSchedulerSpec {
  std::string description;
  OptionTable options;
  bool by_length = false;  // the rates depend on the number of steps of the run
};
const std::map<std::string, LRSchedulerSpec>& lr_scheduler_specs();  // constant, cosine, step

}  // namespace shardmark::specs
