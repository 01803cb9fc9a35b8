// The only training loop: it executes the program of a step.
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
  // This rank's share of the loss, whose mean over ranks is that of the step: the mean over its micro-batches
  // where the model is whole; of a pipeline the last stage has all of it. Scalar, on the device.
  at::Tensor loss;
  at::Tensor
      gradient_norm;  // of all ranks that train together, before clipping; undefined if nobody needs it
};

// Which parts of a step run. compute_only: no call starts, and none is waited for. communication_only:
// nothing else. With a learning rate of 0 parameters stay as they are, and slots hold what was gathered last.
enum class Ablation { none, compute_only, communication_only };

class Executor {
 public:
  // state, guard: outlive the executor. seed: of dropout, which is another one on every rank. first_step: of
  // a run that goes on.
  Executor(TrainingState& state, GradientGuard& guard, int64_t seed, int64_t first_step = 0);
  Executor(const Executor&) = delete;  // the model knows where it is
  Executor& operator=(const Executor&) = delete;

  // One step: forward and backward of its micro-batches, reduction, update.
  //
  // Note [Recomputation]: a block whose activations are not kept keeps its input alone (Chen et al. 2016); it
  // is run again before its backward. Dropout draws from a generator that every run of a block seeds by (key,
  // step, micro-batch, block), so that the second run draws the same without any saved state, and a resumed
  // run the same as the first.
  //
  // Note [Draining]: a rank whose computing fails (out of memory, a bad batch) goes through the rest of the
  // step, and through all steps after it, without computing: every collective still happens, those inside
  // blocks too, so no rank hangs. failure() then says what it was.
  //
  // Whatever fails outside of that (on a GPU memory may run out while gradients are converted, or in the
  // update) ends the job of several ranks: comm/in_step.h. On one rank it is thrown.
  StepResult step(const std::function<Batch()>& next_batch, bool wants_norm = false);
  // From the next step on, steps are captured and replayed; those that are recorded in detail, and ablations,
  // are not. On a GPU, for programs without calls.
  void use_graphs() { graphs_.emplace(state_.comm().device()); }

  // Forward alone: the loss, or without targets the logits. Undefined where this rank has failed.
  at::Tensor evaluate(const Batch& batch);
  // Runs compute unless this rank drains, and makes it drain if that throws.
  void attempt(const std::function<void()>& compute);

  void set_ablation(Ablation ablation);  // what is in flight is waited for
  Ablation ablation() const { return ablation_; }
  StepRecorder& recorder() { return recorder_; }                     // of the phases of all steps
  void set_details(StepRecorder* recorder) { details_ = recorder; }  // of more, for a while; nullptr: none
  void set_heartbeat(Heartbeat* heartbeat) {  // where steps and blocks are noted; nullptr: nowhere
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
  void communicate_inside_block(specs::Dimension dimension, specs::Collective what, const at::Tensor& out,
                                const at::Tensor& in);
  template <class Body>
  void together(const Body& body);  // what ranks wait in for each other: an exception ends the job
  std::string where() const;

  TrainingState& state_;
  Model& model_;
  GradientGuard& guard_;
  uint64_t random_key_;
  int64_t step_;
  bool evaluates_ = false;
  BoundProgram* last_ = nullptr;  // which may have left operations in flight
  // A micro-batch in flight.
  struct MicroBatch {
    Batch batch;
    at::Tensor activation, gradient;  // that goes into the next block: forward, backward
    std::vector<at::Tensor> inputs;   // [block]: what it was given, cut off from the graph before it
    std::vector<at::Tensor> outputs;  // [block]
    std::map<int64_t, DeferredGradients> weights;  // [block]: of backward in two parts
  };
  std::map<int64_t, MicroBatch> micro_batches_;
  StepResult result_;
  std::optional<StepGraphs> graphs_;
  bool by_graphs_ = false;  // the step that runs
  std::exception_ptr failure_;
  Ablation ablation_ = Ablation::none;
  StepRecorder recorder_;
  StepRecorder* details_ = nullptr;
  Heartbeat* heartbeat_ = nullptr;
};

}  // namespace shardmark
