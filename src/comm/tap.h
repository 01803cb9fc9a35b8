// A communicator around another one that can keep operations from happening, or record them to be run again:
// what a step costs without its communication, and its communication without the step.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "laws/program.h"

namespace shardmark {

// The order of starts and waits of a stretch of a program. The memory that operations worked on is kept by
// address: a strategy may aim its groups elsewhere in the meantime.
class Recording {
 public:
  bool empty() const { return num_operations_ == 0; }
  void play() const;  // starts and waits again, in the same order

 private:
  friend class Tap;
  using Event = std::function<void(std::vector<Work>& works)>;
  std::vector<Event> events_;
  size_t num_operations_ = 0;
};

// Hears of operations as a program has them (laws/program.h), on the communicators split off a tap, too.
class OperationListener {
 public:
  virtual ~OperationListener() = default;
  virtual int64_t started(const laws::StartedOperation& operation) = 0;  // returns its number
  virtual void waited(int64_t number) = 0;
};

class Tap final : public Communicator {
 public:
  // pass: hands everything on. record: the same, and remembers it. mute: nothing moves; every operation is
  // complete at once and leaves its output as it is.
  enum class Mode { pass, record, mute };

  explicit Tap(Communicator& inner) : inner_(&inner), state_(std::make_shared<State>()) {}

  void set_mode(Mode mode) { state_->mode = mode; }  // of the communicators split off this one, too
  void set_listener(OperationListener* listener) { state_->listener = listener; }  // nullptr: nobody
  Recording take_recording() { return std::exchange(state_->recording, {}); }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  at::Device device() const override { return inner_->device(); }
  std::string transport() const override { return inner_->transport(); }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return inner_->allocate(numel, dtype); }
  void group_begin() override;
  void group_end() override;
  double bytes_between_nodes() const override { return inner_->bytes_between_nodes(); }
  void abort() noexcept override { inner_->abort(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key) override;
  using Started = std::unique_ptr<Operation>;
  using Tensor = const at::Tensor&;
  Started do_all_reduce(Tensor out, Tensor in, ReduceOp op) override;
  Started do_reduce_scatter(Tensor out, Tensor in, ReduceOp op) override;
  Started do_all_gather(Tensor out, Tensor in) override;
  Started do_broadcast(Tensor out, Tensor in, int root) override;
  Started do_reduce(Tensor out, Tensor in, int root, ReduceOp op) override;
  Started do_all_to_all(Tensor out, Tensor in) override;
  Started do_gather(Tensor out, Tensor in, int root) override;
  Started do_scatter(Tensor out, Tensor in, int root) override;
  Started do_send_recv(Tensor out, int from, Tensor in, int to) override;
  void do_progress() override;

 private:
  struct State {
    Mode mode = Mode::pass;
    Recording recording;
    OperationListener* listener = nullptr;
  };
  class TappedOperation;

  Tap(std::unique_ptr<Communicator> inner, std::shared_ptr<State> state, int64_t stride)
      : owned_(std::move(inner)), inner_(owned_.get()), state_(std::move(state)), stride_(stride) {}
  template <class Start>
  Started tapped(const char* name, size_t payload_bytes, Tensor out, Tensor in, Start&& start, int root = -1);

  std::unique_ptr<Communicator> owned_;
  Communicator* inner_;
  std::shared_ptr<State> state_;
  int64_t stride_ = 1;  // between neighbours among its ranks, in ranks of the first tap
};

}  // namespace shardmark
