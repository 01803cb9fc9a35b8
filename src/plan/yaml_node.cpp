// Strict reading of YAML scalars, lists and maps on top of yaml-cpp.
#include "plan/yaml_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace shardmark {
namespace {

template <class Number>
bool read_all(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }
bool has_control(const std::string& text) { return std::any_of(text.begin(), text.end(), is_control); }

}  // namespace

std::string quoted_line(const std::string& text) {
  std::string line = text.substr(0, 60);
  std::replace_if(line.begin(), line.end(), is_control, ' ');
  return "'" + line + "'";
}

YamlNode::YamlNode(YAML::Node node, std::string path, std::string key)
    : node_(std::move(node)), path_(std::move(path)), key_(std::move(key)) {
  const std::string& tag = node_.Tag();  // "?" a plain scalar, "!" a quoted one
  if (!tag.empty() && tag != "?" && tag != "!")
    fail("tags such as '" + tag + "' have no meaning here; leave it out");
}

YamlNode YamlNode::parse(const std::string& text, const std::string& path) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}:{}:{}: not valid YAML: {}", path, error.mark.line + 1,
                                 error.mark.column + 1, error.msg));
  }
  if (documents.empty() || documents.front().IsNull())
    throw UsageError(path +
                     ":1:1: empty; a suite is a map with 'training' or 'collectives' (see suites/README.md)");
  if (documents.size() > 1)
    YamlNode(documents[1], path, "").fail("a second document; a suite is one document, without '---' inside");
  return {documents.front(), path, ""};
}

std::string YamlNode::place_of(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  return fmt::format("{}:{}:{}: ", path_, mark.line + 1, mark.column + 1);
}

void YamlNode::fail(const std::string& message) const {
  throw UsageError(place() + (key_.empty() ? "" : key_ + ": ") + message);
}

std::string YamlNode::describe() const {
  if (node_.IsMap()) return "a map";
  if (node_.IsSequence()) return "a list";
  if (node_.IsNull()) return "nothing";
  return (is_quoted() ? "the text " : "") + quoted_line(node_.Scalar());
}

std::string YamlNode::text() const {
  if (!node_.IsScalar()) fail("expected a text, got " + describe());
  return node_.Scalar();
}

int64_t YamlNode::integer(int64_t minimum, int64_t maximum) const {
  int64_t value = 0;
  if (!node_.IsScalar() || is_quoted() || !read_all(node_.Scalar(), value) || value < minimum ||
      value > maximum)
    fail(fmt::format(
        "expected a whole number of at least {}{}, got {}", minimum,
        maximum == std::numeric_limits<int64_t>::max() ? "" : fmt::format(" and at most {}", maximum),
        describe()));
  return value;
}

double YamlNode::positive_number() const {
  double value = 0;
  if (!node_.IsScalar() || is_quoted() || !read_all(node_.Scalar(), value) || !std::isfinite(value) ||
      value <= 0)
    fail("expected a number above 0, got " + describe());
  return value;
}

bool YamlNode::boolean() const {
  if (!node_.IsScalar() || is_quoted() || (node_.Scalar() != "true" && node_.Scalar() != "false"))
    fail("expected true or false, got " + describe());
  return node_.Scalar() == "true";
}

std::string YamlNode::word(const std::vector<std::string>& accepted) const {
  if (!node_.IsScalar()) fail("expected one word, got " + describe() + "; " + accepted_words("", accepted));
  for (const auto& known : accepted)
    if (known == node_.Scalar()) return known;
  fail("unknown value " + describe() + "; " + accepted_words(node_.Scalar(), accepted));
}

std::vector<YamlNode> YamlNode::items() const {
  if (!is_list()) return {*this};
  std::vector<YamlNode> items;
  for (const auto& item : node_) items.push_back({item, path_, key_});
  if (items.empty()) fail("an empty list; write at least one value");
  for (const auto& item : items)
    if (item.is_list()) item.fail("a list in a list; an axis is one flat list");
  return items;
}

std::vector<YamlNode> YamlNode::entries() const {
  if (!is_map()) fail("expected a map (key: value), got " + describe());
  std::vector<YamlNode> entries;
  std::set<std::string> seen;
  for (const auto& pair : node_) {
    const YamlNode key(pair.first, path_, key_);
    if (!pair.first.IsScalar() || has_control(pair.first.Scalar()))
      key.fail("expected a word as key, got " + key.describe());
    if (!seen.insert(pair.first.Scalar()).second)
      key.fail("key " + key.describe() + " comes twice; keep one");
    entries.push_back({pair.second, path_, pair.first.Scalar()});
    entries.back().key_node_.reset(pair.first);
  }
  return entries;
}

}  // namespace shardmark
