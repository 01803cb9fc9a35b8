// Text from files and flags, made safe for a message: one line, without terminal control sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardmark {

// Bytes of the UTF-8 character that starts at `at`; 0 where there is none.
size_t utf8_length(std::string_view text, size_t at);

// Control characters and bytes that are no UTF-8 as "\x1b"; those in `kept`, and all else, stay.
std::string printable(std::string_view text, std::string_view kept = "\n");

// The text in quotes, shortened and printable, without line breaks: messages are one line, whatever a file
// holds.
std::string quoted_line(const std::string& text);

// "accepted: a, b", with "did you mean 'a'? " before it where the word is close to one of them.
std::string accepted_words(const std::string& word, const std::vector<std::string>& accepted);

// At most `width` characters of the text; a shortened one ends in "...".
std::string shortened(const std::string& text, size_t width);

// A word as a person types it into a shell: in quotes only where it needs them.
std::string shell_word(const std::string& word);
std::string shell_line(const std::vector<std::string>& words);

// "1 rank", "2 ranks".
std::string counted(int64_t count, const std::string& noun);

// Lines of at most `width` bytes, broken at spaces; a word that is too long for a line stays whole.
std::vector<std::string> wrapped(const std::string& text, size_t width);

}  // namespace shardmark
