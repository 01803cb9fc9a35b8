// Hands operations on, records them, or mutes them.
#include "comm/tap.h"

#include <algorithm>

namespace shardmark {
namespace {

// The same memory for as long as it lives, wherever the tensor's storage is aimed later.
at::Tensor pinned(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  // With its device: asked for the one of an empty part's null pointer, CUDA fails.
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), [keep = tensor](void*) {}, tensor.options(), tensor.device());
}

// Between the ranks of `part` in the communicator it was split off, where this rank is `rank`; 0 where they
// are not equally far apart.
int64_t stride_of(Communicator& part, int rank) {
  if (part.size() == 1) return 1;
  const auto options = at::TensorOptions().dtype(at::kInt).device(part.device());
  const at::Tensor all = at::empty({part.size()}, options);
  part.all_gather(all, at::full({1}, rank, options)).wait();
  const at::Tensor ranks = all.to(at::kCPU), steps = ranks.diff();
  const auto stride = steps[0].item<int>();
  return steps.eq(stride).all().item<bool>() ? stride : 0;
}

}  // namespace

void Recording::play() const {
  std::vector<Work> works;
  for (const Event& event : events_) event(works);
}

class Tap::TappedOperation final : public Operation {
 public:
  TappedOperation(std::shared_ptr<State> state, int64_t heard, Work work)
      : state_(std::move(state)),
        heard_(heard),
        number_(state_->recording.num_operations_),
        work_(std::move(work)) {}
  bool poll() override { return work_.poll(); }
  void wait() override {
    if (state_->mode == Mode::record && number_ > 0)
      state_->recording.events_.emplace_back(
          [n = number_ - 1](std::vector<Work>& works) { works[n].wait(); });
    if (state_->listener != nullptr && heard_ >= 0) state_->listener->waited(heard_);
    work_.wait();
  }

 private:
  std::shared_ptr<State> state_;
  int64_t heard_;  // the listener's number; -1: nobody heard of it
  size_t number_;  // 1 + its place among the recorded operations; 0: started unrecorded
  Work work_;
};

// start(out, in) runs the operation on the inner communicator.
template <class Start>
std::unique_ptr<Operation> Tap::tapped(const char* name, size_t payload_bytes, const at::Tensor& out,
                                       const at::Tensor& in, Start&& start, int root) {
  if (state_->mode == Mode::mute) return nullptr;
  const int64_t heard =
      state_->listener == nullptr
          ? -1
          : state_->listener->started({name, static_cast<double>(payload_bytes), size(), stride_, root});
  if (state_->mode == Mode::record) {
    ++state_->recording.num_operations_;
    state_->recording.events_.emplace_back(
        [start, o = pinned(out), i = pinned(in)](std::vector<Work>& works) { works.push_back(start(o, i)); });
  }
  return std::make_unique<TappedOperation>(state_, heard, start(out, in));
}

void Tap::group_begin() {
  if (state_->mode == Mode::mute) return;
  if (state_->mode == Mode::record)
    state_->recording.events_.emplace_back([c = inner_](std::vector<Work>&) { c->group_begin(); });
  inner_->group_begin();
}

void Tap::group_end() {
  if (state_->mode == Mode::mute) return;
  if (state_->mode == Mode::record)
    state_->recording.events_.emplace_back([c = inner_](std::vector<Work>&) { c->group_end(); });
  inner_->group_end();
}

std::unique_ptr<Communicator> Tap::do_split(int color, int key) {
  auto part = inner_->split(color, key);
  if (!part) return nullptr;
  const int64_t stride = stride_ * stride_of(*part, rank());
  return std::unique_ptr<Communicator>(new Tap(std::move(part), state_, stride));
}

std::unique_ptr<Operation> Tap::do_all_reduce(Tensor out, Tensor in, ReduceOp op) {
  return tapped("all_reduce", in.nbytes(), out, in,
                [c = inner_, op](Tensor o, Tensor i) { return c->all_reduce(o, i, op); });
}
std::unique_ptr<Operation> Tap::do_reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  return tapped("reduce_scatter", in.nbytes(), out, in,
                [c = inner_, op](Tensor o, Tensor i) { return c->reduce_scatter(o, i, op); });
}
std::unique_ptr<Operation> Tap::do_all_gather(Tensor out, Tensor in) {
  return tapped("all_gather", out.nbytes(), out, in,
                [c = inner_](Tensor o, Tensor i) { return c->all_gather(o, i); });
}
std::unique_ptr<Operation> Tap::do_broadcast(Tensor out, Tensor in, int root) {
  return tapped(
      "broadcast", out.nbytes(), out, in,
      [c = inner_, root](Tensor o, Tensor i) { return c->broadcast(o, i, root); }, root);
}
std::unique_ptr<Operation> Tap::do_reduce(Tensor out, Tensor in, int root, ReduceOp op) {
  return tapped(
      "reduce", in.nbytes(), out, in,
      [c = inner_, root, op](Tensor o, Tensor i) { return c->reduce(o, i, root, op); }, root);
}
std::unique_ptr<Operation> Tap::do_all_to_all(Tensor out, Tensor in) {
  return tapped("all_to_all", in.nbytes(), out, in,
                [c = inner_](Tensor o, Tensor i) { return c->all_to_all(o, i); });
}
std::unique_ptr<Operation> Tap::do_gather(Tensor out, Tensor in, int root) {
  return tapped(
      "gather", in.nbytes() * static_cast<size_t>(size()), out, in,
      [c = inner_, root](Tensor o, Tensor i) { return c->gather(o, i, root); }, root);
}
std::unique_ptr<Operation> Tap::do_scatter(Tensor out, Tensor in, int root) {
  return tapped(
      "scatter", out.nbytes() * static_cast<size_t>(size()), out, in,
      [c = inner_, root](Tensor o, Tensor i) { return c->scatter(o, i, root); }, root);
}
std::unique_ptr<Operation> Tap::do_send_recv(Tensor out, int from, Tensor in, int to) {
  return tapped("send_recv", std::max(in.nbytes(), out.nbytes()), out, in,
                [c = inner_, from, to](Tensor o, Tensor i) { return c->send_recv(o, from, i, to); });
}

void Tap::do_progress() {
  if (state_->mode != Mode::mute) inner_->progress();
}

}  // namespace shardmark
