// Writes choices as text, "fsdp(shard=full, prefetch=1)", and parses them. choice_from_text reads back
// exactly what to_text prints.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "schema/choice.h"
#include "schema/json.h"

namespace shardmark {
namespace {

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("_./+-:*~@%").find(c) != std::string_view::npos;
}

// Whether a bare word would be read back as a number or boolean instead of a text.
bool reads_as_value(const std::string& word) {
  if (word == "true" || word == "false") return true;
  if (word.empty() || (word[0] != '-' && std::isdigit(static_cast<unsigned char>(word[0])) == 0))
    return false;  // returns early for most words: a failing JSON parse is slow, as it composes its error
  const auto value = nlohmann::json::parse(word, nullptr, false);
  return value.is_number();
}

// Parses one choice: `name`, `name(option=value, ...)` or `name:option=value,...`. A value is a word, several
// words, a quoted text as in JSON, or a choice with options whose own values are no choices. Every error says
// what was expected, at which character, and how a choice is written.
class Parser {
 public:
  Parser(const std::string& text, bool takes_choices) : text_(text), takes_choices_(takes_choices) {}

  Choice parse() {
    Choice choice{word("a name", [](char c) { return is_word_char(c) && c != ':'; })};
    if (take(':'))
      options(choice.options);
    else
      options_in_brackets(choice.options);
    skip_space();
    if (at_ != text_.size()) fail("the end");
    return choice;
  }

 private:
  void options(Options& options) {
    do {
      const std::string key = word("an option", [](char c) { return is_word_char(c); });
      if (options.contains(key))
        throw UsageError(fmt::format("{}: option {} is given twice", quoted_line(text_), quoted_line(key)));
      if (!take('=')) fail("'=' after '" + key + "'");
      options[key] = value(key);
    } while (take(','));
  }

  void options_in_brackets(Options& options_inside) {
    if (!take('(')) return;
    options(options_inside);
    if (!take(')')) fail("',' or ')'");
  }

  OptionValue value(const std::string& key) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '"') return quoted(key);
    std::string bare = word("a value of '" + key + "'", is_word_char);
    const size_t word_end = at_;
    if (takes_choices_ && at_ < text_.size() && text_[at_] == '(') {
      takes_choices_ = false;
      Choice inside{bare};
      options_in_brackets(inside.options);
      takes_choices_ = true;
      return to_text(inside);
    }
    for (size_t end = word_end; skip_space(), at_ < text_.size() && is_word_char(text_[at_]); end = at_) {
      bare += text_.substr(end, at_ - end);  // several words are one value: files=README.md src/**/*.h
      bare += word("a word", is_word_char);
    }
    if (!reads_as_value(bare)) return bare;
    return option_value(nlohmann::ordered_json::parse(bare));
  }

  // Parses a text between quotation marks, with the escapes of JSON.
  OptionValue quoted(const std::string& key) {
    for (size_t end = at_ + 1; end < text_.size(); ++end) {
      if (text_[end] == '\\')
        ++end;  // skips the escaped character
      else if (text_[end] == '"')
        return value_of_quoted(key, end + 1 - at_);
    }
    fail(fmt::format("'\"' that ends the value of '{}'", key), text_.size());
  }

  OptionValue value_of_quoted(const std::string& key, size_t length) {
    const auto parsed = nlohmann::ordered_json::parse(text_.substr(at_, length), nullptr, false);
    if (parsed.is_discarded()) fail("a text for '" + key + "'");
    at_ += length;
    return option_value(parsed);
  }

  template <class Accepts>
  std::string word(const std::string& what, Accepts accepts) {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && accepts(text_[at_])) ++at_;
    if (at_ == start) fail(what);
    return text_.substr(start, at_ - start);
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  [[noreturn]] void fail(const std::string& expected) { fail(expected, at_); }
  [[noreturn]] void fail(const std::string& expected, size_t at) {
    throw UsageError(
        fmt::format("{}: expected {} at character {}; accepted: name, name(option=value, ...), "
                    "name:option=value,...",
                    quoted_line(text_), expected, at + 1));
  }

  const std::string& text_;
  bool takes_choices_;
  size_t at_ = 0;
};

// Whether the text without quotation marks is read back as the same text: a choice with options is.
bool is_choice_text(const std::string& text) {
  if (!text.ends_with(')')) return false;
  try {
    return to_text(Parser(text, /*takes_choices=*/false).parse()) == text;
  } catch (const UsageError&) {
    return false;
  }
}

std::string value_text(const OptionValue& value) {
  if (!value.is<std::string>()) return to_json(value).dump();
  auto text = value.get<std::string>();
  const bool bare =
      !text.empty() && std::all_of(text.begin(), text.end(), is_word_char) && !reads_as_value(text);
  if (bare || is_choice_text(text)) return text;
  return dump_line(to_json(value));
}

}  // namespace

std::string to_text(const Choice& choice) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : choice.options) parts.push_back(key + "=" + value_text(value));
  return parts.empty() ? choice.name : fmt::format("{}({})", choice.name, fmt::join(parts, ", "));
}

Choice choice_from_text(const std::string& text) { return Parser(text, /*takes_choices=*/true).parse(); }

Choice choice_or_name(const std::string& text) {
  try {
    return choice_from_text(text);
  } catch (const UsageError&) {
    return {text};
  }
}

}  // namespace shardmark
