// Splits a text into numbers and the text between them.
#include "base/natural_order.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace shardmark {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

}  // namespace

// A number inside a word (gpt2) is its digits only. A number that stands alone may have a fraction and an
// exponent.
NaturalKey natural_key(std::string_view text) {
  NaturalKey key;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    if (!is_digit(text[begin])) {
      end = static_cast<size_t>(
          std::find_if(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_digit) -
          text.begin());
      key.emplace_back(std::string(text.substr(begin, end - begin)));
      continue;
    }
    const bool in_word = begin > 0 && is_letter(text[begin - 1]);
    const char* const first = text.data() + begin;
    const char* const last = text.data() + text.size();
    double value = 0;
    const auto [stop, error] =
        std::from_chars(first, in_word ? std::find_if_not(first, last, is_digit) : last, value);
    end = static_cast<size_t>(stop - text.data());
    key.emplace_back(error == std::errc() ? value : HUGE_VAL);
  }
  return key;
}

}  // namespace shardmark
