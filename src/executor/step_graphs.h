// Executes steps as CUDA graphs, which are captured once and then replayed. A step then needs a few launches
// instead of one for every kernel, and the GPU waits less between kernels. The program stays the same; what
// its instructions launch is captured.
//
// A graph holds a stretch of a program: the instructions of one phase, between two marks of the step's
// recorder, so that phases are measured as without graphs. Micro-batches are loaded between graphs, into
// memory at fixed addresses. The first step of a program runs without graphs, because libraries choose and
// compile their kernels in it. The second step is captured and then replayed, like all later ones. A replay
// repeats what was captured: learning rate, random numbers and memory are those of the captured step.
//
// Source: NVIDIA, CUDA C++ Programming Guide, CUDA Graphs; PyTorch, Accelerating PyTorch with CUDA Graphs.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "models/model.h"
#include "strategies/program.h"

namespace shardmark {

class StepGraphs {
 public:
  // Instructions [begin, end). An instruction that loads a micro-batch is a stretch by itself.
  struct Stretch {
    size_t begin, end;
    bool loads;
  };
  static std::vector<Stretch> stretches_of(const strategies::Program& program);

  explicit StepGraphs(at::Device gpu);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Begins a step of a program, which must outlive this. The caller then calls run() for each stretch that
  // loads nothing, in order.
  const std::vector<Stretch>& begin_step(const strategies::Program& program);
  // `body` launches what the stretch's instructions launch, and returns whether it could. If not, nothing is
  // replayed, now or later.
  void run(size_t stretch, const std::function<bool()>& body);
  // `outputs` are the results of the bodies, if they were called. Returns copies of what the graphs have
  // computed there.
  std::vector<at::Tensor> end_step(const std::vector<at::Tensor>& outputs);

  // The batch in the memory that graphs read it from, which is the same in every step.
  const Batch& at_its_place(int64_t micro_batch, const Batch& batch);

 private:
  struct Graphs;
  struct OfProgram;
  std::unique_ptr<Graphs> graphs_;
  std::map<const strategies::Program*, std::unique_ptr<OfProgram>> programs_;
  OfProgram* current_ = nullptr;
  std::map<int64_t, Batch> batches_;
};

}  // namespace shardmark
