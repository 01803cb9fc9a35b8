// Who sends which part to whom.
#include "comm/nccl/messages.h"

#include "base/error.h"

namespace shardmark {
namespace {

// The part of an all_to_all that goes from this rank to the peer, or comes from there.
at::Tensor part_of(const Call& call, bool sends, int rank, int peer, int size) {
  int64_t at = 0;
  const auto part = [&](int other) {
    return sends ? call.part(rank, other, size) : call.part(other, rank, size);
  };
  for (int other = 0; other < peer; ++other) at += part(other);
  return (sends ? call.in : call.out).view(-1).narrow(0, at, part(peer));
}

// What `side` holds for each peer, one after the other; nothing where this rank does not use it.
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
  for (int peer = 0; peer < size; ++peer) {
    Message message{peer, {}, {}};
    if (what == Collective::all_to_all || what == Collective::all_to_all_v) {
      message.out = part_of(call, /*sends=*/false, rank, peer, size);
      message.in = part_of(call, /*sends=*/true, rank, peer, size);
    } else if (what == Collective::gather) {
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
