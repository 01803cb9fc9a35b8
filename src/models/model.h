// A model is a list of blocks over named parameters. Blocks compute like single-device code; the collectives
// that they need (tensor, context and expert parallelism, synchronized batch norm) are made by
// `start_collective`. A model's table in specs/ declares the parameters. They start on the meta device, and a
// strategy gives them memory.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "kernels/launcher.h"
#include "models/fp8.h"
#include "specs/stages.h"

namespace shardmark {

// The contents of one micro-batch. Tokens: inputs and targets are int64 [B, T]. Images: inputs [B, C, H, W],
// targets int64 [B]. Rows: inputs [B, features], targets int64 [B].
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;  // undefined: the last block returns its logits instead of the loss
  // For samples that are packed from documents, the position of each token in its document, int64 [B, T].
  // Undefined: it is the position in the sample.
  at::Tensor positions = {};
  bool masks_documents = false;  // a token attends to its own document only
  at::Tensor mask = {};          // of attention, where needs_mask() says so: Model::prepared()
  bool wants_scores = false;     // the last block returns target_scores() instead of the loss
  int64_t num_samples() const { return inputs.size(0); }
  // Copies the batch. A copy from page-locked memory is ordered before what the current stream does next, and
  // the host does not wait for it.
  Batch on(at::Device device) const;
};

// A function from one tensor to another. The first block gets batch.inputs. The last block returns the loss,
// a scalar mean over the micro-batch.
struct Block {
  std::string name;
  std::function<at::Tensor(const at::Tensor& input, const Batch& batch)> forward;
};

// Gradients of parameters that are computed later than those of activations. Each function adds one to its
// parameter's.
using DeferredGradients = std::vector<std::function<void()>>;

// Starts the next collective of those in the block's row of the table, and returns a function that waits for
// it. A block waits for each that it has started, in that order. By default there is one rank and nothing to
// do.
using StartCollective = std::function<std::function<void()>(
    specs::Dimension dimension, specs::Collective what, const at::Tensor& out, const at::Tensor& in)>;

// Makes the block's next collective, an all-gather over `ranks` ranks of how many rows this one sends to each
// receiver. own: int64 [receivers], which are the ranks or their experts. index: of this rank among them.
// Returns the numbers of all ranks, [rank][receiver], on the host. The exchanges of rows among these ranks
// that follow in the block, and those of its backward, are divided by them.
using GatherCounts = std::function<std::vector<int64_t>(const at::Tensor& own, int64_t ranks, int64_t index)>;

// In a row of a token that travels once to a rank (Split::dispatch), in place of the weight of an expert that
// the token has not chosen. A softmax never gives it.
inline constexpr double kNotChosen = -1;

class Model {
 public:
  Model(specs::ModelTable table, at::ScalarType dtype, at::Device device);
  Model(const Model&) = delete;  // blocks hold pointers to its parameters
  Model& operator=(const Model&) = delete;

  const specs::ModelTable& table() const { return table_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  std::vector<Block>& blocks() { return blocks_; }
  void add_block(Block block) { blocks_.push_back(std::move(block)); }

  // The tensor of a parameter: a leaf that requires gradients once a strategy has assigned it, and a meta
  // tensor before. Its address is stable, so that blocks may keep a reference.
  at::Tensor& parameter(const std::string& name);
  at::Tensor& parameter(size_t group, size_t index) { return *by_group_[group][index]; }
  // Divides the same parameters into the groups of another table. Blocks do not notice.
  void regroup(specs::ModelTable table);
  // Keeps only the blocks of a pipeline stage, with their parameters and buffers.
  void keep(const specs::StageTable& part);
  std::vector<at::Tensor> parameters_of_block(int64_t block);
  at::Tensor& buffer(const std::string& name);
  const std::map<std::string, at::Tensor>& buffers() const { return buffers_; }

  // The batch as blocks expect it: on the model's device, with images and rows in its type, with only its own
  // tokens on a context-parallel rank, and with an attention mask if it needs one.
  Batch prepared(const Batch& batch) const;

  // false: batch norm uses its running statistics, and does not update them.
  bool training = true;
  int64_t step = 0;  // that is computed, from 0 on; for mixtures whose routing changes from step to step
  // Whether the model has dropout, and whether it is applied.
  bool has_dropout = false, draws = false;
  uint64_t random_key = 0;  // for the random numbers of the block that computes
  // Whether blocks compute in the forms that are fast on GPUs, which round differently. Set on a GPU.
  bool gpu_forms;
  // The kernels of src/kernels for the layers of language models and for batch norm; nullptr: torch's
  // kernels.
  Kernels fused;
  // How the linear layers and experts of transformer blocks multiply, if not in dtype().
  std::optional<Fp8> fp8;
  // Whether a block is being recomputed for its backward. Running statistics are not updated again then.
  bool recompute = false;
  // int64 [layers, experts]: the number of tokens that each expert has been given since this was last zeroed.
  // Undefined for models without experts.
  at::Tensor expert_load;
  // For a backward in two parts: while gradients of activations are computed, layers with large weights leave
  // the gradients of these weights here. nullptr: they compute them at once. splits_backward: whether there
  // will be such backwards.
  DeferredGradients* deferred = nullptr;
  bool splits_backward = false;
  StartCollective start_collective = [](auto...) { return [] {}; };
  void communicate(specs::Dimension dimension, specs::Collective what, const at::Tensor& out,
                   const at::Tensor& in) const {
    start_collective(dimension, what, out, in)();
  }
  // Makes progress on collectives that have started, for blocks that compute meanwhile.
  std::function<void()> poll = [] {};
  GatherCounts gather_counts = [](const at::Tensor&, int64_t, int64_t) { return std::vector<int64_t>(); };
  // The gradient that the backward of the loss starts from, as a scalar of the given type. Blocks other than
  // the head use it, too, if they add to the loss. By default it is that of a single micro-batch.
  std::function<at::Tensor(at::ScalarType type)> loss_gradient;

 private:
  specs::ModelTable table_;
  at::ScalarType dtype_;
  at::Device device_;
  std::vector<Block> blocks_;
  std::map<std::string, at::Tensor> parameters_;
  std::vector<std::vector<at::Tensor*>> by_group_;  // [group][parameter]
  std::map<std::string, at::Tensor> buffers_;
};

// nullptr: blocks multiply in the model's type.
inline const Fp8* fp8_of(const Model& model) { return model.fp8 ? &*model.fp8 : nullptr; }

// Registered by src/models/<name>.cpp. Adds the blocks to a model that was made from the table of the same
// name.
struct ModelEntry {
  std::string description;
  void (*add_blocks)(Model& model, const Options& options);
};

// Makes the model of a resolved choice.
std::unique_ptr<Model> make_model(const Choice& choice, at::ScalarType dtype, at::Device device);

// The values of expert_load, [layer, expert]. Empty if there are no experts. The host waits for the device.
std::vector<double> expert_load(const Model& model);

// Allocates every parameter separately, with its initial values, for single-device tests and references.
void materialize(Model& model, int64_t seed);

}  // namespace shardmark
