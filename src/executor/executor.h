// The executor of a step's program. It is the only training loop.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>

#include "comm/watch/heartbeat.h"
#include "executor/optim/gradient_guard.h"
#include "executor/step_graphs.h"
#include "executor/step_recorder.h"
#include "executor/training_state.h"
#include "models/model.h"

namespace shardmark {

struct StepResult {
  // This rank's share of the loss: the mean over its micro-batches. The mean over ranks is the step's loss.
  // In a pipeline only the stage with the last part of the model has a loss, which it multiplies by the
  // number of stages, and the others have 0. A scalar on the device.
  at::Tensor loss;
  // The gradient norm before clipping, over all ranks that train together. Undefined if nobody asked for it.
  at::Tensor gradient_norm;
};

// Which parts of a step are executed. compute_only starts no calls and waits for none. communication_only
// makes calls and does nothing else. With a learning rate of 0, parameters keep their values, and slots hold
// what was gathered last.
enum class Ablation { none, compute_only, communication_only };

class Executor {
 public:
  // `state` and `guard` must outlive the executor. `seed` is that of dropout, which draws differently on each
  // data-parallel rank. `first_step` is that of a resumed run.
  Executor(TrainingState& state, GradientGuard& guard, int64_t seed, int64_t first_step = 0);
  Executor(const Executor&) = delete;  // the model keeps a pointer to it
  Executor& operator=(const Executor&) = delete;

  // Executes one step: forward and backward of all micro-batches, gradient reduction, and the update.
  //
  // Note [Recomputation]: a block whose activations are not kept keeps only its input (Chen et al. 2016), and
  // runs forward again before its backward. Before every run of a block, the generator of dropout is seeded
  // by (key, step, micro-batch, block). The second run therefore draws the same numbers without any saved
  // state, and so does a resumed run.
  //
  // Note [Draining]: a rank whose computation fails (it runs out of memory, or gets a bad batch) goes on
  // through the rest of the step and all later steps without computing. It still makes every collective,
  // including those inside blocks, so that no other rank hangs. failure() returns the exception.
  //
  // A failure anywhere else (on a GPU, memory may run out while gradients are converted, or in the update)
  // ends the job if there are several ranks (comm/in_step.h). With one rank it is thrown.
  StepResult step(const std::function<Batch()>& next_batch, bool wants_norm = false);
  // From the next step on, captures steps as CUDA graphs and replays them. Steps that are recorded in detail
  // and ablations are executed as before. Only on a GPU, for programs without calls.
  void use_graphs() { graphs_.emplace(state_.comm().device()); }

  // Runs forward alone and returns the loss, or the logits if the batch has no targets. Undefined if this
  // rank has failed.
  at::Tensor evaluate(const Batch& batch);
  // Runs `compute`, unless this rank drains already. If `compute` throws, the rank drains from now on.
  void attempt(const std::function<void()>& compute);

  void set_ablation(Ablation ablation);  // waits for what is in flight
  Ablation ablation() const { return ablation_; }
  StepRecorder& recorder() { return recorder_; }  // of the phases of all steps
  // Records some steps in detail; nullptr: none.
  void set_details(StepRecorder* recorder) { details_ = recorder; }
  // Where the current step and block are noted; nullptr: nowhere.
  void set_heartbeat(Heartbeat* heartbeat) {
    heartbeat_ = heartbeat;
    if (heartbeat != nullptr && mesh().pipeline > 1)
      heartbeat->in_pipeline(mesh().stage_of(state_.comm().rank()));
  }

  std::exception_ptr failure() const { return failure_; }
  const specs::Mesh& mesh() const { return state_.mesh(); }
  Communicator& copies_comm() { return state_.copies(); }

 private:
  using What = strategies::Instruction::What;
  void execute(BoundProgram& bound, const std::function<Batch()>& next_batch);
  void execute_as_graphs(BoundProgram& bound, const std::function<Batch()>& next_batch);
  void execute_one(BoundProgram& bound, size_t i, const std::function<Batch()>& next_batch);
  void compute(const strategies::Instruction& instruction, const std::function<Batch()>& next_batch);
  struct MicroBatch;
  void load(int64_t number, const std::function<Batch()>& next_batch);
  void forward(const strategies::Instruction& instruction);
  void recompute(const strategies::Instruction& instruction);
  void backward(const strategies::Instruction& instruction);
  void backward_input(const strategies::Instruction& instruction);
  void backward_weight(const strategies::Instruction& instruction);
  at::Tensor output_gradient(const strategies::Instruction& instruction, MicroBatch& micro_batch);
  void release(const strategies::Instruction& instruction);
  at::Tensor received(const strategies::Instruction& instruction) const;
  void send(const strategies::Instruction& instruction, const at::Tensor& value) const;
  static void free_unless_needed(const at::Tensor& output);
  bool has_loss(const strategies::Instruction& instruction) const;
  bool sends_output(const strategies::Instruction& instruction) const;
  void apply(const BoundProgram& bound);
  at::Tensor run_block(const strategies::Instruction& instruction);
  void note(const strategies::Instruction& instruction);
  std::function<void()> start_inside_block(specs::Dimension dimension, specs::Collective what,
                                           const at::Tensor& out, const at::Tensor& in);
  std::vector<int64_t> gather_counts(const at::Tensor& own, int64_t ranks, int64_t index);
  template <class Body>
  // Runs what ranks wait for each other in: an exception ends the job.
  void together(const Body& body);
  std::string where() const;

  TrainingState& state_;
  Model& model_;
  GradientGuard& guard_;
  uint64_t random_key_;
  int64_t step_;
  bool evaluates_ = false;
  BoundProgram* last_ = nullptr;  // the last program; it may have left operations in flight
  // If ranks compute alone: the first row and the number of those that this rank would send to itself in the
  // exchange that follows.
  std::pair<int64_t, int64_t> rows_for_itself_ = {0, -1};
  // A micro-batch between its load and the end of its backward.
  struct MicroBatch {
    Batch batch;
    at::Tensor activation, gradient;  // the input of the next block in forward, in backward
    std::vector<at::Tensor> inputs;   // [block]: detached from the autograd graph of the block before
    std::vector<at::Tensor> outputs;  // [block]
    std::map<int64_t, DeferredGradients> weights;  // [block]: for a backward in two parts
  };
  std::map<int64_t, MicroBatch> micro_batches_;
  StepResult result_;
  std::optional<StepGraphs> graphs_;
  bool by_graphs_ = false;  // whether the current step runs as graphs
  std::exception_ptr failure_;
  Ablation ablation_ = Ablation::none;
  StepRecorder recorder_;
  StepRecorder* details_ = nullptr;
  Heartbeat* heartbeat_ = nullptr;
};

}  // namespace shardmark
