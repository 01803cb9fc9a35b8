// An integer type of tokens in a file, and its conversion to 64 bits.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace shardmark {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie in memory");

struct TokenType {
  int64_t bytes = 0;
  void (*widen)(const char* from, std::span<int64_t> to) = nullptr;
};

template <class Token>
constexpr TokenType kTokenType = {
    sizeof(Token), [](const char* from, std::span<int64_t> to) {
      for (int64_t& wide : to) {
        Token token;
        std::memcpy(&token, from, sizeof token);
        from += sizeof token;
        wide = static_cast<int64_t>(token);  // NOLINT(bugprone-signed-char-misuse): ids, no text
      }
    }};

}  // namespace shardmark
