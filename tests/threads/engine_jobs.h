// Jobs on vectors for the tests of the engine. They have the same structure as the collectives of comm/.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "comm/pt2pt/engine/engine.h"

namespace shardmark {

using Values = std::vector<int32_t>;
inline constexpr int64_t kValueBytes = sizeof(int32_t);
inline constexpr int64_t kChunkValues = 64;

struct Place {
  int rank;
  int size;
  int other(int step) const { return (rank + step) % size; }
};

inline int64_t num_chunks_of(size_t values) {
  return (static_cast<int64_t>(values) + kChunkValues - 1) / kChunkValues;
}

// One round: every rank's `mine` is copied to every rank's `all`, in rank order.
inline Job all_gather(Place place, const std::shared_ptr<Values>& all, const std::shared_ptr<Values>& mine) {
  return {num_chunks_of(mine->size()), [=](Chunk& chunk) {
            if (chunk.round > 0) return false;
            const auto length = static_cast<int64_t>(mine->size());
            const int64_t begin = chunk.index * kChunkValues;
            const int64_t bytes = std::min(kChunkValues, length - begin) * kValueBytes;
            for (int step = 1; step < place.size; ++step) {
              const int peer = place.other(step);
              chunk.receive(all->data() + length * peer + begin, bytes, peer);
              chunk.send(mine->data() + begin, bytes, peer);
            }
            std::memcpy(all->data() + length * place.rank + begin, mine->data() + begin,
                        static_cast<size_t>(bytes));
            return true;
          }};
}

// size - 1 rounds: in each round, a rank passes to its neighbour what it received in the previous round.
inline Job ring(Place place, const std::shared_ptr<Values>& all) {
  return {1, [=](Chunk& chunk) {
            if (chunk.round == place.size - 1) return false;
            const auto length = static_cast<int64_t>(all->size()) / place.size;
            const auto part = [&](int back) {
              return all->data() + length * ((place.rank - back + place.size) % place.size);
            };
            chunk.receive(part(chunk.round + 1), length * kValueBytes, place.other(place.size - 1));
            chunk.send(part(chunk.round), length * kValueBytes, place.other(1));
            return true;
          }};
}

// Two passes, in place: chunk i sums one part of each rank into `values`, and chunk i + n distributes the
// sums.
inline Job all_reduce(Place place, const std::shared_ptr<Values>& values) {
  const auto length = static_cast<int64_t>(values->size()) / place.size;  // length of a part
  const int64_t num = num_chunks_of(static_cast<size_t>(length));
  const auto sum = [=](Chunk& chunk) {
    const int64_t begin = chunk.index * kChunkValues;
    const int64_t count = std::min(kChunkValues, length - begin);
    auto* brought = reinterpret_cast<int32_t*>(chunk.scratch(count * kValueBytes * (place.size - 1)));
    for (int step = 1; step < place.size; ++step) {
      const int peer = place.other(step);
      int32_t* theirs = brought + count * (step - 1);
      if (chunk.round == 0) chunk.receive(theirs, count * kValueBytes, peer);
      if (chunk.round == 0) chunk.send(values->data() + length * peer + begin, count * kValueBytes, peer);
      for (int64_t i = 0; chunk.round == 1 && i < count; ++i) {
        (*values)[static_cast<size_t>(length * place.rank + begin + i)] += theirs[i];
      }
    }
    return chunk.round == 0;
  };
  const auto hand_out = [=](Chunk& chunk) {
    if (chunk.round > 0) return false;
    const int64_t begin = (chunk.index - num) * kChunkValues;
    const int64_t bytes = std::min(kChunkValues, length - begin) * kValueBytes;
    for (int step = 1; step < place.size; ++step) {
      const int peer = place.other(step);
      chunk.receive(values->data() + length * peer + begin, bytes, peer);
      chunk.send(values->data() + length * place.rank + begin, bytes, peer);
    }
    return true;
  };
  return {2 * num, [=](Chunk& chunk) { return chunk.index < num ? sum(chunk) : hand_out(chunk); }, num};
}

// Never completes unless `from` sends.
inline Job wait_for(int from, const std::shared_ptr<Values>& values) {
  return {1, [=](Chunk& chunk) {
            if (chunk.round > 0) return false;
            chunk.receive(values->data(), static_cast<int64_t>(values->size()) * kValueBytes, from);
            return true;
          }};
}

}  // namespace shardmark
