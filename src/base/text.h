// Makes text from files and flags safe for a message: one line, without terminal control sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardmark {

// Length in bytes of the UTF-8 character that starts at `at`; 0 if no valid character starts there.
size_t utf8_length(std::string_view text, size_t at);

// Replaces control characters and invalid UTF-8 bytes by escapes such as "\x1b". The characters in `kept`
// stay.
std::string printable(std::string_view text, std::string_view kept = "\n");

// The text in quotes, shortened and printable, on one line, whatever the file it came from contains.
std::string quoted_line(const std::string& text);

// Returns "accepted: a, b". If the word is close to one of them, "did you mean 'a'? " comes first.
std::string accepted_words(const std::string& word, const std::vector<std::string>& accepted);

// Returns at most `width` characters of the text. A shortened text ends in "...".
std::string shortened(const std::string& text, size_t width);

// The word as a person types it into a shell: in quotes only if it needs them.
std::string shell_word(const std::string& word);
std::string shell_line(const std::vector<std::string>& words);

// A count and its noun: "1 rank", "2 ranks".
std::string counted(int64_t count, const std::string& noun);

// Breaks the text at spaces into lines of at most `width` bytes. A word that is longer than a line stays
// whole.
std::vector<std::string> wrapped(const std::string& text, size_t width);

}  // namespace shardmark
