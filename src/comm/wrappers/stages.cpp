// Makes progress on operations that run in stages: Note [Order of stages].
#include "comm/wrappers/stages.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/StreamGuard.h>

#include "base/backoff.h"
#include "device/own_stream.h"

namespace shardmark {
namespace {

c10::Stream current_stream() { return at::cuda::getCurrentCUDAStream().unwrap(); }

// Starts the stages that may start: this operation may have started at most as many stages (`allowed`) as the
// operation before it.
void advance(Staged& staged, size_t allowed) {
  c10::OptionalStreamGuard guard;
  if (staged.own) guard.reset_stream(*staged.own->stream);
  const size_t num_stages = staged.stages.size();
  while (!staged.done && (staged.num_started == num_stages || staged.num_started < allowed) &&
         staged.current.poll()) {
    staged.current.wait();  // on a GPU: orders the operation's stream
    if (staged.num_started < num_stages) {
      staged.current = staged.stages[staged.num_started++]();
      continue;
    }
    if (staged.own) staged.own->end.record(*staged.own->stream);
    staged.done = true;
  }
}

class StagedOperation final : public Operation {
 public:
  StagedOperation(StageQueue& queue, std::shared_ptr<Staged> staged)
      : queue_(queue), staged_(std::move(staged)) {}
  bool poll() override {
    queue_.progress();
    return complete();
  }
  void wait() override {
    queue_.wait_until([this] { return complete(); });
    if (staged_->own) staged_->own->end.block(current_stream());
    staged_->beside.wait();
  }

 private:
  bool complete() { return staged_->done && staged_->beside.poll(); }

  StageQueue& queue_;
  std::shared_ptr<Staged> staged_;
};

class PassedOperation final : public Operation {
 public:
  PassedOperation(StageQueue& queue, Work work) : queue_(queue), work_(std::move(work)) {}
  bool poll() override {
    queue_.progress();
    return work_.poll();
  }
  void wait() override {
    queue_.wait_until([this] { return work_.poll(); });
    work_.wait();
  }

 private:
  StageQueue& queue_;
  Work work_;
};

}  // namespace

std::unique_ptr<Operation> StageQueue::start(Staged staged) {
  const at::Device device = all_.front()->device();
  if (device.is_cuda()) {
    auto stream = own_stream(device);
    c10::Event start(c10::DeviceType::CUDA);
    start.record(current_stream());
    start.block(*stream);
    staged.own.reset(new Staged::OwnStream{std::move(stream), c10::Event(c10::DeviceType::CUDA)});
  }
  under_way_.push_back(std::make_shared<Staged>(std::move(staged)));
  auto operation = std::make_unique<StagedOperation>(*this, under_way_.back());
  progress();
  return operation;
}

std::unique_ptr<Operation> StageQueue::pass(Work work) {
  return std::make_unique<PassedOperation>(*this, std::move(work));
}

void StageQueue::progress() {
  size_t allowed = SIZE_MAX;
  for (const auto& staged : under_way_) {
    advance(*staged, allowed);
    allowed = staged->num_started;
  }
  while (!under_way_.empty() && under_way_.front()->done) under_way_.pop_front();
  for (Communicator* comm : all_) comm->progress();
}

void StageQueue::wait_until(const std::function<bool()>& complete) {
  for (Backoff backoff; !complete(); backoff.pause()) progress();
}

}  // namespace shardmark
