// Escaping for terminals and shells, and the hint for a misspelt word.
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace shardmark {
namespace {

constexpr size_t kMostQuoted = 60;  // bytes

// Is the character at `at` a control character: C0, DEL, or C1 (which takes two bytes in UTF-8)?
bool is_control(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  return first < ' ' || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
}

// Optimal string alignment distance: the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d.back().back();
}

}  // namespace

// The range of the second byte excludes overlong forms and surrogates. Source: Unicode 15, table 3-7.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length < 2) return length;
  if (at + length > text.size()) return 0;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

// A byte that begins no valid character is escaped alone, and reading goes on with the next byte. So one
// damaged byte does not hide the text behind it.
std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const bool stays = length > 0 && (kept.find(text[at]) != std::string_view::npos || !is_control(text, at));
    for (const size_t end = at + std::max<size_t>(length, 1); at < end; ++at)
      out +=
          stays ? std::string(1, text[at]) : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
  }
  return out;
}

std::string shortened(const std::string& text, size_t width) {
  constexpr std::string_view kMore = "...";
  // `end` is where a text that is too long is cut to leave room for the dots.
  size_t count = 0, end = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    if (count + kMore.size() <= width) end = at;
    at += std::max<size_t>(utf8_length(text, at), 1);
  }
  return count <= width ? text : text.substr(0, end) + std::string(kMore.substr(0, width));
}

std::string quoted_line(const std::string& text) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + std::max<size_t>(utf8_length(text, end), 1);
    if (next > kMostQuoted) break;
    end = next;
  }
  return "'" + printable(text.substr(0, end), "") + (end < text.size() ? "...'" : "'");
}

// A word is close if at most a third of its letters are wrong. A word of one or two letters would have to be
// equal. A long text is not a misspelt word, and comparing it would take time in proportion to its length.
std::string accepted_words(const std::string& word, const std::vector<std::string>& accepted) {
  std::string list = fmt::format("accepted: {}", fmt::join(accepted, ", "));
  if (word.size() < 3 || word.size() > 40 || accepted.empty()) return list;
  const auto distance = [&](const std::string& known) { return edit_distance(word, known); };
  const auto nearest = *std::min_element(accepted.begin(), accepted.end(), [&](const auto& a, const auto& b) {
    return distance(a) < distance(b);
  });
  return distance(nearest) <= word.size() / 3 ? "did you mean '" + nearest + "'? " + list : list;
}

// Control characters are written as octal numbers in bash's $'...', because a terminal would act on them.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "-_./:,=+@%";
  const auto is_plain = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  const auto is_control = [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; };
  if (std::any_of(word.begin(), word.end(), is_control)) {  // needs $'...'
    std::string escaped = "$'";
    for (const char c : word)
      escaped += is_control(c) ? fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)))
                 : c == '\'' || c == '\\' ? std::string("\\") + c
                                          : std::string(1, c);
    return escaped + "'";
  }
  // Nothing is special between single quotes but the quote itself. It ends the quotes, stands escaped
  // between them, and begins them again.
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string counted(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace shardmark
