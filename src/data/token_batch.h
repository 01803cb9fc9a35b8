// Windows of a token stream as a batch: what text, token files and synthetic tokens share.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "data/source.h"

namespace shardmark {

// Whole windows of `length` tokens whose targets, shifted by one, also lie in the stream.
inline int64_t num_windows(int64_t num_tokens, int64_t length) {
  return std::max<int64_t>(0, num_tokens - 1) / length;
}

// inputs[b] = stream[start(draws[b]) ...], targets[b] = the same one token later; both int64 [B, length].
template <class Token, class Start>
Batch token_batch(std::span<const Token> stream, const std::vector<Draw>& draws, int64_t length, bool pinned,
                  Start start) {
  const int64_t count = std::ssize(draws);
  Batch batch{empty_on_host({count, length}, at::kLong, pinned),
              empty_on_host({count, length}, at::kLong, pinned)};
  int64_t* inputs = batch.inputs.data_ptr<int64_t>();
  int64_t* targets = batch.targets.data_ptr<int64_t>();
  for (const Draw& draw : draws) {
    const auto window = stream.subspan(static_cast<size_t>(start(draw)), static_cast<size_t>(length) + 1);
    inputs = std::copy(window.begin(), window.end() - 1, inputs);
    targets = std::copy(window.begin() + 1, window.end(), targets);
  }
  return batch;
}

}  // namespace shardmark
