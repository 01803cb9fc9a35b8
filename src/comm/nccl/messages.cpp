// Which rank sends which part to which.
#include "comm/nccl/messages.h"

#include "base/error.h"

namespace shardmark {
namespace {

// Hands out the parts of one side of an all_to_all, peer by peer. Each part begins where the one before it
// ended, so that finding all n parts takes n steps.
class PartsOfSide {
 public:
  explicit PartsOfSide(const at::Tensor& side) : side_(side.view(-1)) {}
  at::Tensor next(int64_t numel) {
    const int64_t begin = end_;
    end_ += numel;
    return side_.narrow(0, begin, numel);
  }

 private:
  at::Tensor side_;
  int64_t end_ = 0;
};

std::vector<Message> messages_of_parts(const Call& call, int rank, int size) {
  std::vector<Message> messages;
  PartsOfSide out(call.out), in(call.in);
  for (int peer = 0; peer < size; ++peer) {
    at::Tensor received = out.next(call.part(peer, rank, size)), sent = in.next(call.part(rank, peer, size));
    messages.push_back({peer, std::move(received), std::move(sent)});
  }
  return messages;
}

// The part of `side` that belongs to a peer; the parts follow each other in rank order. Undefined if this
// rank does not use the side.
at::Tensor part_of(const at::Tensor& side, bool used, int peer, int size) {
  if (!used) return {};
  const int64_t numel = side.numel() / size;
  return side.view(-1).narrow(0, peer * numel, numel);
}

at::Tensor used(const at::Tensor& side, bool is) { return is ? side : at::Tensor(); }

}  // namespace

std::vector<Message> messages_of(const Call& call, int rank, int size) {
  const auto& [what, out, in, op, root, from, to, parts] = call;
  std::vector<Message> messages;
  if (what == Collective::send_recv) {
    if (call.uses_out(rank)) messages.push_back({from, out, {}});
    if (call.uses_in(rank)) messages.push_back({to, {}, in});
    return messages;
  }
  if (what == Collective::all_to_all || what == Collective::all_to_all_v)
    return messages_of_parts(call, rank, size);
  for (int peer = 0; peer < size; ++peer) {
    Message message{peer, {}, {}};
    if (what == Collective::gather) {
      message.out = part_of(out, rank == root, peer, size);
      message.in = used(in, peer == root);
    } else {
      ENSURE(what == Collective::scatter, "an operation that is no set of messages");
      message.out = used(out, peer == root);
      message.in = part_of(in, rank == root, peer, size);
    }
    const bool in_place = message.out.defined() && message.in.defined() && peer == rank &&
                          message.out.data_ptr() == message.in.data_ptr();
    if (!in_place && (message.out.defined() || message.in.defined())) messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace shardmark
