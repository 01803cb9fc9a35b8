// The collectives that only move data, as jobs of the engine. Each function returns the job of this rank:
// advance(chunk) posts the messages of a round and returns false when the chunk is complete
// (engine/engine.h).
#include <cstring>

#include "comm/pt2pt/jobs.h"
#include "comm/pt2pt/pieces.h"

namespace shardmark {
namespace {

void copy(char* to, const char* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

Job broadcast_along_tree(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root) {
  const Tree tree(group.rank(), group.size(), root);
  const auto bytes = static_cast<int64_t>(out.nbytes());
  const bool is_root = group.rank() == root;
  return {1, [=](Chunk& chunk) {
            const int level = tree.depth() - 1 - chunk.round;
            if (is_root && chunk.round == 0) copy(bytes_at(out, 0), bytes_at(in, 0), bytes);
            if (level < 0) return false;
            if (tree.parent(level) >= 0) chunk.receive(bytes_at(out, 0), bytes, tree.parent(level));
            if (tree.child(level) >= 0) chunk.send(bytes_at(out, 0), bytes, tree.child(level));
            return true;
          }};
}

// Where the part of each peer lies on one side of an all_to_all or all_to_all_v. The parts of all_to_all have
// equal lengths.
class PartsOf {
 public:
  PartsOf(const HostGroup& group, const Call& call, const at::Tensor& side, bool sends)
      : bytes_(side.nbytes()) {
    equal_ = bytes_ / group.size();
    if (call.parts == nullptr) return;
    auto pieces = std::make_shared<std::vector<Piece>>();
    int64_t at = 0;
    for (int peer = 0; peer < group.size(); ++peer) {
      const int from = sends ? group.rank() : peer, to = sends ? peer : group.rank();
      const auto bytes = call.parts->between(from, to) * static_cast<int64_t>(side.element_size());
      pieces->push_back({at, bytes});
      at += bytes;
    }
    pieces_ = std::move(pieces);
  }
  Piece of(int peer) const {
    return pieces_ == nullptr ? Piece{equal_ * peer, equal_} : (*pieces_)[static_cast<size_t>(peer)];
  }

 private:
  int64_t bytes_, equal_ = 0;
  std::shared_ptr<const std::vector<Piece>> pieces_;
};

}  // namespace

Job all_gather_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in) {
  const auto shard = static_cast<int64_t>(in.nbytes());
  const ShardCut cut(shard, group.size());
  return {cut.num_chunks(), [=, &group](Chunk& chunk) {
            if (chunk.round > 0) return false;
            const Piece span = cut.span(chunk.index);
            const char* mine = bytes_at(in, span.begin);
            for (int step = 1; step < group.size(); ++step) {
              const int from = receives_from(group, step);
              chunk.receive(bytes_at(out, shard * from + span.begin), span.bytes, from);
            }
            for (int step = 1; step < group.size(); ++step)
              chunk.send(mine, span.bytes, sends_to(group, step));
            copy(bytes_at(out, shard * group.rank() + span.begin), mine, span.bytes);
            return true;
          }};
}

// For long messages the root scatters the pieces of a chunk, and then every rank sends its piece to all
// others. So no rank sends more than about twice the message, however many ranks there are.
Job broadcast_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root) {
  const auto bytes = static_cast<int64_t>(out.nbytes());
  if (bytes > 0 && is_short(bytes, group.size())) return broadcast_along_tree(group, out, in, root);
  const SharedCut cut(bytes, group.size());
  return {cut.num_chunks(), [=, &group](Chunk& chunk) {
            const auto data = [&](int rank) { return bytes_at(out, cut.piece(chunk.index, rank).begin); };
            const auto length = [&](int rank) { return cut.piece(chunk.index, rank).bytes; };
            const int me = group.rank();
            if (chunk.round > 1) return false;
            if (chunk.round == 0 && me == root) {
              const Piece whole = cut.chunk(chunk.index);
              copy(bytes_at(out, whole.begin), bytes_at(in, whole.begin), whole.bytes);
            }
            if (chunk.round == 0 && me != root) chunk.receive(data(me), length(me), root);
            for (int step = 1; step < group.size(); ++step) {
              const int to = sends_to(group, step);
              const int from = receives_from(group, step);
              if (chunk.round == 0 && me == root) chunk.send(data(to), length(to), to);
              if (chunk.round == 1 && me != root) chunk.receive(data(from), length(from), from);
              if (chunk.round == 1 && to != root) chunk.send(data(me), length(me), to);
            }
            return true;
          }};
}

Job all_to_all_job(const HostGroup& group, const Call& call) {
  const PartsOf sent(group, call, call.in, /*sends=*/true), received(group, call, call.out, /*sends=*/false);
  // All ranks must have the same number of chunks, because the tags of later operations follow from it. So it
  // is that of the longest part of all, even if this rank neither sends nor receives it.
  const int64_t numel = call.parts != nullptr ? call.parts->longest() : call.in.numel() / group.size();
  const ShardCut longest(numel * static_cast<int64_t>(call.in.element_size()), group.size());
  return {longest.num_chunks(), [=, &group, out = call.out, in = call.in](Chunk& chunk) {
            if (chunk.round > 0) return false;
            // A shorter part may have no bytes left for this chunk; its span is then empty.
            const auto span = [&](const PartsOf& parts, int peer) {
              const Piece part = parts.of(peer);
              const ShardCut cut(part.bytes, group.size());
              const Piece piece = chunk.index < cut.num_chunks() ? cut.span(chunk.index) : Piece{0, 0};
              return Piece{part.begin + piece.begin, piece.bytes};
            };
            for (int step = 1; step < group.size(); ++step) {
              const Piece piece = span(received, receives_from(group, step));
              if (piece.bytes > 0)
                chunk.receive(bytes_at(out, piece.begin), piece.bytes, receives_from(group, step));
            }
            for (int step = 1; step < group.size(); ++step) {
              const Piece piece = span(sent, sends_to(group, step));
              if (piece.bytes > 0) chunk.send(bytes_at(in, piece.begin), piece.bytes, sends_to(group, step));
            }
            const Piece own = span(sent, group.rank());
            copy(bytes_at(out, span(received, group.rank()).begin), bytes_at(in, own.begin), own.bytes);
            return true;
          }};
}

Job gather_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root) {
  const auto shard = static_cast<int64_t>(in.nbytes());
  const ShardCut cut(shard, group.size());
  return {cut.num_chunks(), [=, &group](Chunk& chunk) {
            if (chunk.round > 0) return false;
            const Piece span = cut.span(chunk.index);
            const char* mine = bytes_at(in, span.begin);
            if (group.rank() != root) {
              chunk.send(mine, span.bytes, root);
              return true;
            }
            for (int step = 1; step < group.size(); ++step) {
              const int from = receives_from(group, step);
              chunk.receive(bytes_at(out, shard * from + span.begin), span.bytes, from);
            }
            copy(bytes_at(out, shard * root + span.begin), mine, span.bytes);
            return true;
          }};
}

Job scatter_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root) {
  const auto shard = static_cast<int64_t>(out.nbytes());
  const ShardCut cut(shard, group.size());
  return {cut.num_chunks(), [=, &group](Chunk& chunk) {
            if (chunk.round > 0) return false;
            const Piece span = cut.span(chunk.index);
            char* mine = bytes_at(out, span.begin);
            if (group.rank() != root) {
              chunk.receive(mine, span.bytes, root);
              return true;
            }
            for (int step = 1; step < group.size(); ++step) {
              const int to = sends_to(group, step);
              chunk.send(bytes_at(in, shard * to + span.begin), span.bytes, to);
            }
            copy(mine, bytes_at(in, shard * root + span.begin), span.bytes);
            return true;
          }};
}

Job send_recv_job(const HostGroup& group, const at::Tensor& out, int from, const at::Tensor& in, int to) {
  const auto sent = to == Call::kNobody ? 0 : static_cast<int64_t>(in.nbytes());
  const auto received = from == Call::kNobody ? 0 : static_cast<int64_t>(out.nbytes());
  const ShardCut send_cut(sent, 1);
  const ShardCut receive_cut(received, 1);
  return {std::max(send_cut.num_chunks(), receive_cut.num_chunks()), [=, &group](Chunk& chunk) {
            if (chunk.round > 0) return false;
            const bool to_myself = to == group.rank();
            if (chunk.index < receive_cut.num_chunks() && from != group.rank()) {
              const Piece span = receive_cut.span(chunk.index);
              chunk.receive(bytes_at(out, span.begin), span.bytes, from);
            }
            if (chunk.index < send_cut.num_chunks()) {
              const Piece span = send_cut.span(chunk.index);
              if (to_myself) copy(bytes_at(out, span.begin), bytes_at(in, span.begin), span.bytes);
              if (!to_myself) chunk.send(bytes_at(in, span.begin), span.bytes, to);
            }
            return true;
          }};
}

}  // namespace shardmark
