// Steps as CUDA graphs, captured once and replayed: a GPU is given a step in a few launches instead of one
// for every kernel, and starts the next kernel sooner. The program is the same; what it launches is recorded.
//
// A graph holds a stretch of a program: the instructions of one phase, between two marks of the step's
// recorder, so that phases are measured as ever. Micro-batches are loaded between graphs, into memory that
// stays. The first step of a program runs as it is (libraries choose and compile their kernels), the second
// is captured, and replayed like all after it. What is replayed is what was captured: learning rate, draws
// and memory are those of that step.
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
  // Instructions [begin, end); of one that loads a micro-batch: itself alone.
  struct Stretch {
    size_t begin, end;
    bool loads;
  };
  static std::vector<Stretch> stretches_of(const strategies::Program& program);

  explicit StepGraphs(at::Device gpu);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // A step of a program, which must outlive this: of each of these stretches that loads nothing, run(), in
  // order.
  const std::vector<Stretch>& begin_step(const strategies::Program& program);
  // body launches what the stretch's instructions launch, and returns whether it could; else nothing is
  // replayed, now or later.
  void run(size_t stretch, const std::function<bool()>& body);
  // outputs: what bodies have made, if they were called. Copies of what the graphs have left there.
  std::vector<at::Tensor> end_step(const std::vector<at::Tensor>& outputs);

  // The batch as graphs read it: at the same place in every step.
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
