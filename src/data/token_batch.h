// Batches of windows of a token stream, shared by text, token files and synthetic tokens.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "data/source.h"

namespace shardmark {

// The number of whole windows of `length` tokens whose targets, which are shifted by one token, also lie in
// the stream.
inline int64_t num_windows(int64_t num_tokens, int64_t length) {
  return std::max<int64_t>(0, num_tokens - 1) / length;
}

template <class Token>
std::span<const Token> window_at(const std::vector<Token>& stream, int64_t start, int64_t length) {
  return std::span(stream).subspan(static_cast<size_t>(start), static_cast<size_t>(length) + 1);
}

// For each draw b, window(draws[b]) returns length + 1 tokens. inputs[b] is the window without its last
// token, targets[b] without its first one. Both are int64 [B, length].
template <class Window>
Batch token_batch(const std::vector<Draw>& draws, int64_t length, bool pinned, Window window) {
  const int64_t count = std::ssize(draws);
  Batch batch{empty_on_host({count, length}, at::kLong, pinned),
              empty_on_host({count, length}, at::kLong, pinned)};
  int64_t* inputs = batch.inputs.data_ptr<int64_t>();
  int64_t* targets = batch.targets.data_ptr<int64_t>();
  for (const Draw& draw : draws) {
    const auto tokens = window(draw);
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    targets = std::copy(tokens.begin() + 1, tokens.end(), targets);
  }
  return batch;
}

}  // namespace shardmark
