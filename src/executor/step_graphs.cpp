// Captures and replays with torch's CUDAGraph. The tensors of all graphs are in one memory pool. This is safe
// because graphs are replayed one after the other, and tensors that outlive their graph (activations,
// results) are still held while later graphs are captured.
#include "executor/step_graphs.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "device/device.h"
#include "device/own_stream.h"
#include "strategies/step_trace.h"

namespace shardmark {

using strategies::Instruction;

std::vector<StepGraphs::Stretch> StepGraphs::stretches_of(const strategies::Program& program) {
  std::vector<Stretch> all;
  const auto& instructions = program.instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const bool loads = instructions[i].what == Instruction::What::data;
    const bool begins =
        all.empty() || loads || all.back().loads ||
        strategies::phase_of(instructions[i].part) != strategies::phase_of(instructions[i - 1].part);
    if (begins) all.push_back({i, i, loads});
    all.back().end = i + 1;
  }
  return all;
}

namespace {

// Captures what `body` launches, and returns whether it launched everything. If it throws, the capture is
// abandoned, and its exception is the only error that is reported.
bool captured(at::cuda::CUDAGraph& graph, at::MempoolId_t pool, at::Device gpu,
              const std::function<bool()>& body) {
  const auto give_up = [&] {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // an invalid capture, which leaves the allocator in the pool
      try {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(gpu.index(), pool);
      } catch (const c10::Error&) {  // the allocator has stopped already
      }
    }
  };
  graph.capture_begin(pool, cudaStreamCaptureModeRelaxed);
  bool is_whole = false;
  try {
    is_whole = body();
  } catch (...) {
    give_up();
    throw;
  }
  if (is_whole)
    graph.capture_end();
  else
    give_up();
  return is_whole;
}

}  // namespace

struct StepGraphs::Graphs {
  explicit Graphs(at::Device gpu) : device(gpu), stream(own_stream(gpu)) {}
  at::Device device;
  std::shared_ptr<const c10::Stream> stream;  // of captures, which are impossible on the default stream
  at::MempoolId_t pool = at::cuda::graph_pool_handle();
};

struct StepGraphs::OfProgram {
  explicit OfProgram(const strategies::Program& program) : stretches(stretches_of(program)) {}
  std::vector<Stretch> stretches;
  std::map<size_t, at::cuda::CUDAGraph> graphs;  // [stretch]
  std::vector<at::Tensor> outputs;
  int64_t num_steps = 0;
};

StepGraphs::StepGraphs(at::Device gpu) : graphs_(std::make_unique<Graphs>(gpu)) {}
StepGraphs::~StepGraphs() = default;

const std::vector<StepGraphs::Stretch>& StepGraphs::begin_step(const strategies::Program& program) {
  std::unique_ptr<OfProgram>& of_program = programs_[&program];
  if (of_program == nullptr) of_program = std::make_unique<OfProgram>(program);
  current_ = of_program.get();
  // Frees the memory of the first step, which is not in the pool.
  if (current_->num_steps == 1) empty_caches(graphs_->device);
  return current_->stretches;
}

// The capture mode is relaxed, because other threads of this process go on meanwhile: they read samples and
// pin memory.
void StepGraphs::run(size_t stretch, const std::function<bool()>& body) {
  if (current_->num_steps > 1) return current_->graphs.at(stretch).replay();
  synchronize(graphs_->device);  // with the stream of all other work
  bool is_whole = true;
  {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::CUDAStream(*graphs_->stream));
    if (current_->num_steps == 0) {
      body();
      is_whole = false;
    } else {
      is_whole = captured(current_->graphs[stretch], graphs_->pool, graphs_->device, body);
    }
    synchronize(graphs_->device);  // with the capture stream
  }
  if (is_whole) current_->graphs.at(stretch).replay();
}

std::vector<at::Tensor> StepGraphs::end_step(const std::vector<at::Tensor>& outputs) {
  if (++current_->num_steps <= 2) current_->outputs = outputs;
  std::vector<at::Tensor> copies;
  for (const at::Tensor& output : current_->outputs)
    copies.push_back(output.defined() ? output.clone() : output);
  return copies;
}

const Batch& StepGraphs::at_its_place(int64_t micro_batch, const Batch& batch) {
  const auto [found, is_new] = batches_.try_emplace(micro_batch, batch);
  Batch& kept = found->second;
  for (at::Tensor Batch::*const member : {&Batch::inputs, &Batch::targets, &Batch::positions, &Batch::mask})
    if (const at::Tensor& from = batch.*member; from.defined()) {
      if (is_new)
        kept.*member = from.clone();
      else
        (kept.*member).copy_(from);
    }
  return kept;
}

}  // namespace shardmark
