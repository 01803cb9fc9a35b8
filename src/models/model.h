// A model is a list of blocks over named parameters: single-device code that knows nothing of ranks. Its
// parameters are declared by its table in specs/ and start on the meta device; a strategy puts memory behind
// them.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "kernels/launcher.h"
#include "specs/stages.h"

namespace shardmark {

// What one micro-batch holds. tokens: inputs and targets int64 [B, T]; images: inputs [B, C, H, W], targets
// int64 [B]; rows: inputs [B, features], targets int64 [B].
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;  // undefined: the last block returns its logits instead of the loss
  // Of samples packed of documents, each token's position in its document, int64 [B, T]; undefined: it is
  // that in the sample.
  at::Tensor positions = {};
  bool masks_documents = false;  // a token attends to its own document only
  at::Tensor mask = {};          // of attention, where it does: Model::prepared()
  bool wants_scores = false;     // the last block returns target_scores() instead of the loss
  int64_t num_samples() const { return inputs.size(0); }
  // A copy from page-locked memory is ordered before what the current stream does next; the host does not
  // wait.
  Batch on(at::Device device) const;
};

// One tensor in, one tensor out. The first block is given batch.inputs; the last returns the loss, a mean
// over the micro-batch (scalar).
struct Block {
  std::string name;
  std::function<at::Tensor(const at::Tensor& input, const Batch& batch)> forward;
};

// Gradients of parameters that are computed later than those of activations: each adds one.
using DeferredGradients = std::vector<std::function<void()>>;

// Makes the next collective of those that the block's row names. The default is one rank: nothing to do.
using Communicate = std::function<void(specs::Dimension dimension, specs::Collective what,
                                       const at::Tensor& out, const at::Tensor& in)>;

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

  // The slot of a parameter: a leaf that requires gradients once a strategy has assigned it, a meta tensor
  // before. Its address is stable, so that blocks may keep it.
  at::Tensor& parameter(const std::string& name);
  at::Tensor& parameter(size_t group, size_t index) { return *by_group_[group][index]; }
  // Deals the same parameters into the groups of another table; blocks do not notice.
  void regroup(specs::ModelTable table);
  // Keeps the blocks of a stage of a pipeline, with their parameters and buffers.
  void keep(const specs::StageTable& part);
  std::vector<at::Tensor> parameters_of_block(int64_t block);
  at::Tensor& buffer(const std::string& name);
  const std::map<std::string, at::Tensor>& buffers() const { return buffers_; }

  // A batch as blocks take it: on the model's device, images and rows in its type, of a context rank its
  // tokens, with the mask of attention where it needs one.
  Batch prepared(const Batch& batch) const;

  bool training = true;     // false: batch norm goes by its running statistics, and leaves them alone
  bool draws = false;       // dropout happens; set where a model has any
  uint64_t random_key = 0;  // of what the block that computes draws
  bool gpu_forms;  // blocks compute in the forms that GPUs are fast at; set on a GPU. Another rounding
  Kernels fused;   // layers of language models by the kernels of src/kernels; nullptr: by torch's
  bool recompute = false;  // a block runs again for its backward: running statistics stay as they are
  // int64 [layers, experts]: tokens that each expert of a mixture was given since this was last zeroed;
  // undefined of other models.
  at::Tensor expert_load;
  // Of backward in two parts: layers with large weights leave the gradients of these here while activations'
  // are computed. nullptr: they compute them at once. splits_backward: there will be such backwards.
  DeferredGradients* deferred = nullptr;
  bool splits_backward = false;
  Communicate communicate = [](auto...) {};
  // With which backward of the loss begins, a scalar of this type: blocks that are no head add to the loss,
  // too. The default is the loss of one micro-batch.
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

// Registered by src/models/<name>.cpp: adds the blocks to a model made from the table of the same name.
struct ModelEntry {
  std::string description;
  void (*add_blocks)(Model& model, const Options& options);
};

// From a resolved choice.
std::unique_ptr<Model> make_model(const Choice& choice, at::ScalarType dtype, at::Device device);

// What expert_load holds, [layer, expert]; empty where there are no experts. The host waits for it.
std::vector<double> expert_load(const Model& model);

// Every parameter in its own memory, with initial values: for single-device tests and references.
void materialize(Model& model, int64_t seed);

}  // namespace shardmark
