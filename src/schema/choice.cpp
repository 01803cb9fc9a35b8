// Checks a choice against its table of options (types, ranges, accepted words) and fills in the defaults.
#include "schema/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"
#include "schema/json.h"

namespace shardmark {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// The option's own range, cut to the range that every number has.
Real range_of(const OptionSpec& spec) {
  return {std::max(spec.minimum, values::kNumber.least), std::min(spec.maximum, values::kNumber.most)};
}

// Leaves out a bound that the option does not set: then only 64 bits limit the integer.
std::string integer_text(const OptionSpec& spec) {
  const bool from = spec.minimum > values::kNumber.least, to = spec.maximum < values::kNumber.most;
  if (from && to) return "an integer " + range_of(spec).range();
  if (from) return fmt::format("an integer, at least {}", spec.minimum);
  return to ? fmt::format("an integer, at most {}", spec.maximum) : "an integer";
}

std::string accepted_text(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::integer:
      return integer_text(spec);
    case OptionType::number:
      return range_of(spec).expected();
    case OptionType::boolean:
      return "true, false";
    case OptionType::text:
      return spec.accepted.empty() ? "a string (quote it if it looks like a number)" : joined(spec.accepted);
    case OptionType::choice:
      return joined(spec.kind().names);
  }
  return "";
}

bool in_range(const OptionValue& value, const OptionSpec& spec) {
  const auto number = value.get<double>();
  const Real range = range_of(spec);
  return number >= range.least && number <= range.most;  // false for a NaN
}

// The value as the user wrote it. JSON would write null for a number that is not finite.
std::string shown(const OptionValue& value) {
  if (value.is<double>() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());
  return dump_line(to_json(value));
}

// Whether the value is the text of a choice with a known name. resolve() checks its options.
bool names_one_of(const ChoiceKind& kind, const OptionValue& value) {
  if (!value.is<std::string>()) return false;
  try {
    const std::string name = choice_from_text(value.get<std::string>()).name;
    return std::count(kind.names.begin(), kind.names.end(), name) > 0;
  } catch (const UsageError&) {
    return false;
  }
}

bool accepts(const OptionSpec& spec, const OptionValue& value) {
  switch (spec.type) {
    case OptionType::integer:
      return value.is<int64_t>() && in_range(value, spec);
    case OptionType::number:
      return value.is_number() && in_range(value, spec);
    case OptionType::boolean:
      return value.is<bool>();
    case OptionType::text:
      return value.is<std::string>() &&
             (spec.accepted.empty() ||
              std::count(spec.accepted.begin(), spec.accepted.end(), value.get<std::string>()) > 0);
    case OptionType::choice:
      return names_one_of(spec.kind(), value);
  }
  return false;
}

std::string resolved_text(const std::string& text, const ChoiceKind& kind, const Where& where) {
  const Choice choice = choice_from_text(text);
  return to_text(resolve(choice, kind.options(choice.name), kind.noun, where));
}

// Gives equal values one form, however they were written, so that `1` and `1.0` make the same point.
OptionValue normal_form(const OptionValue& value, const OptionSpec& spec, const Where& where) {
  if (spec.type == OptionType::number) return value.get<double>();
  if (spec.type != OptionType::choice) return value;
  const Where of_option = [&](const std::string&) { return where ? where(spec.key) : ""; };
  return resolved_text(value.get<std::string>(), spec.kind(), of_option);
}

}  // namespace

// Unknown options are refused first, so that the error about a misspelt option names it, and not the
// required option that seems to be missing because of it. Then every option of the table gets its value, in
// the order of the table.
Choice resolve(const Choice& choice, const OptionTable& table, const std::string& noun, const Where& where) {
  const auto fail = [&](const std::string& key, const std::string& what) {
    throw UsageError((where ? where(key) : "") + what);
  };
  const std::string owner = noun + " " + choice.name;
  for (const auto& [key, value] : choice.options) {
    if (std::any_of(table.begin(), table.end(),
                    [&, &name = key](const OptionSpec& spec) { return spec.key == name; }))
      continue;
    std::vector<std::string> known;
    for (const OptionSpec& spec : table) known.push_back(spec.key);
    fail(key, fmt::format("unknown option '{}' of {}; accepted: {}", key, owner,
                          known.empty() ? "none" : joined(known)));
  }
  Choice resolved{choice.name};
  for (const OptionSpec& spec : table) {
    const OptionValue* const given = choice.options.find(spec.key);
    const OptionValue& value = given == nullptr ? spec.default_value : *given;
    if (given == nullptr && value.is_nothing())
      fail(spec.key, fmt::format("{} needs option '{}': {}", owner, spec.key, spec.description));
    if (given != nullptr && !accepts(spec, value))
      fail(spec.key, fmt::format("option '{}' of {} is {}; accepted: {}", spec.key, owner, shown(value),
                                 accepted_text(spec)));
    const OptionValue normal = normal_form(value, spec, where);
    if (!(spec.is_later && normal == normal_form(spec.default_value, spec, where)))
      resolved.options[spec.key] = normal;
  }
  return resolved;
}

// An option that is a choice itself is shortened, too. Options that the table does not know are kept,
// because studies of later versions may have them.
Choice without_defaults(const Choice& choice, const OptionTable& table) {
  Choice shorter{choice.name};
  for (const auto& [key, value] : choice.options) {
    const auto spec = std::find_if(table.begin(), table.end(),
                                   [&, &name = key](const OptionSpec& known) { return known.key == name; });
    if (spec != table.end() && spec->default_value == value) continue;
    shorter.options[key] = value;
    if (spec == table.end() || spec->type != OptionType::choice || !accepts(*spec, value)) continue;
    const Choice inside = choice_from_text(value.get<std::string>());
    shorter.options[key] = to_text(without_defaults(inside, spec->kind().options(inside.name)));
  }
  return shorter;
}

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

  // A value in quotes is a text. A bare word followed by a bracket is a choice with options, and is stored
  // as text. Any other bare word becomes a number or a boolean if it reads as one.
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
