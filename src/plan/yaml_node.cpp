// Strict reading of YAML scalars, lists and maps with yaml-cpp, which accepts some damaged files silently:
// these are checked here.
#include "plan/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "base/key_value.h"
#include "schema/file.h"

namespace shardmark {
namespace {

bool has_control(const std::string& text) { return printable(text, "") != text; }

void require_utf8(const std::string& text, const std::string& path) {
  size_t line = 1, start = 0;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    if (length == 0)
      throw UsageError(
          fmt::format("{}:{}:{}: not UTF-8; save the file as UTF-8 text", path, line, at - start + 1));
    if (text[at] == '\n') {
      ++line;
      start = at + 1;
    }
  }
}

std::string place_in(const std::string& path, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}: ", path, mark.line + 1, mark.column + 1);
}

// Whether the quoted text that begins at `begin` is closed. Within single quotes a doubled quote does not
// close it; within double quotes one after a backslash does not.
bool is_closed(const std::string& text, size_t begin) {
  const char quote = text[begin];
  for (size_t at = begin + 1; at < text.size(); ++at) {
    const bool escapes = quote == '"' ? text[at] == '\\' : text[at] == quote && text.substr(at, 2) == "''";
    if (escapes)
      ++at;
    else if (text[at] == quote)
      return true;
  }
  return false;
}

// Catches two mistakes that yaml-cpp ignores: it records where each document starts, to find a second one,
// and refuses a quote that is never closed, for which yaml-cpp takes the rest of the file as text.
struct DocumentStart : YAML::EventHandler {
  DocumentStart(const std::string& whole, const std::string& file) : text(whole), path(file) {}
  const std::string& text;
  const std::string& path;
  YAML::Mark mark;
  void OnDocumentStart(const YAML::Mark& start) override { mark = start; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& start, const std::string& tag, YAML::anchor_t,
                const std::string&) override {
    if (tag != "!") return;  // not quoted
    const size_t begin = text.find_first_of("\"'", static_cast<size_t>(start.pos));
    if (begin == std::string::npos || is_closed(text, begin)) return;
    throw UsageError(place_in(path, start) + "not valid YAML: the quote that begins here is never closed");
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

// YAML::Load reads the first document and ignores what follows. YAML::LoadAll (0.7) would find it, but does
// not return if there is a stray ','.
void require_one_document(const std::string& text, const std::string& path) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart document(text, path);
  if (parser.HandleNextDocument(document) && parser.HandleNextDocument(document))
    throw UsageError(place_in(path, document.mark) +
                     "a second document, or a stray character before it; a suite is one document");
}

}  // namespace

std::string read_text(const std::string& path, const std::string& advice) {
  if (auto text = read_input(path, kMostSuiteBytes)) return std::move(*text);
  throw UsageError(path + ": cannot be read: " + std::strerror(ENOENT) + "; " + advice);
}

YamlNode::YamlNode(const YAML::Node& node, Origin origin, std::string key)
    : node_(node), origin_(std::move(origin)), key_(std::move(key)) {
  const std::string& tag = node_.Tag();  // "?" a plain scalar, "!" a quoted one
  if (!tag.empty() && tag != "?" && tag != "!")
    fail("tags such as '" + tag + "' have no meaning here; remove it");
}

// The text is parsed twice: by YAML::Load into a tree, and as events, which show what the tree hides.
YamlNode YamlNode::parse(const std::string& text, const std::string& path, const std::string& what) {
  require_utf8(text, path);
  try {
    const YAML::Node root = YAML::Load(text);
    require_one_document(text, path);
    if (root.IsNull()) throw UsageError(path + ":1:1: empty; " + what + " (see suites/README.md)");
    return {root, {path}, ""};
  } catch (const YAML::Exception& error) {
    throw UsageError(place_in(path, error.mark) + "not valid YAML: " + printable(error.msg, ""));
  }
}

// Each value is parsed as a YAML document of its own, so it may be a list, a map or a quoted text. The
// values are then put together into one map, as if a file had them.
YamlNode YamlNode::of_flag(const std::vector<std::string>& texts, const std::string& flag,
                           const std::vector<std::string>& accepted) {
  YAML::Node map(YAML::NodeType::Map);
  for (const std::string& text : texts) {
    const auto [key, value] = key_value(text, flag, accepted);
    const YamlNode read = parse(value, flag + " " + key, "a value is expected");
    const size_t dot = key.find('.');
    if (dot == std::string::npos)
      map[key] = read.node_;
    else
      map[key.substr(0, dot)][key.substr(dot + 1)] = read.node_;
  }
  return {map, {flag, /*has_lines=*/false}, ""};
}

std::string YamlNode::place_of(const YAML::Node& node) const {
  return origin_.has_lines ? place_in(origin_.name, node.Mark()) : origin_.name + ": ";
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
  if (!node_.IsScalar()) fail("expected a string, got " + describe());
  return node_.Scalar();
}

bool YamlNode::boolean() const {
  if (!node_.IsScalar() || is_quoted() || (node_.Scalar() != "true" && node_.Scalar() != "false"))
    fail("expected true or false, got " + describe());
  return node_.Scalar() == "true";
}

// A value that is no list stands for a list with that one value.
std::vector<YamlNode> YamlNode::items() const {
  if (!is_list()) return {*this};
  std::vector<YamlNode> items;
  items.reserve(node_.size());
  for (size_t i = 0; i < node_.size(); ++i) items.push_back({node_[i], origin_, key_});
  if (items.empty()) fail("an empty list; write at least one value");
  for (const auto& item : items)
    if (item.is_list()) item.fail("a list in a list; an axis is one flat list");
  return items;
}

// Keys are compared here, because yaml-cpp keeps both values of a key that is given twice.
std::vector<YamlNode> YamlNode::entries() const {
  if (!is_map()) fail("expected a map (key: value), got " + describe());
  std::vector<YamlNode> entries;
  std::set<std::string> seen;
  for (const auto& pair : node_) {
    const YamlNode key(pair.first, origin_, key_);
    if (!pair.first.IsScalar() || has_control(pair.first.Scalar()))
      key.fail("expected a word as key, got " + key.describe());
    if (!seen.insert(pair.first.Scalar()).second)
      key.fail("key " + key.describe() + " is given twice; keep one");
    entries.push_back({pair.second, origin_, pair.first.Scalar()});
    // Assigning to a YAML::Node would change the node that it refers to. reset() makes it refer to another
    // one.
    entries.back().key_node_.reset(pair.first);
  }
  return entries;
}

YamlMap::YamlMap(const YamlNode& node, const std::string& noun, const std::vector<std::string>& accepted)
    : node_(node), noun_(noun), entries_(node.entries()) {
  for (const auto& entry : entries_)
    if (std::find(accepted.begin(), accepted.end(), entry.key()) == accepted.end())
      throw UsageError(
          entry.key_place() + "unknown key '" + entry.key() + "' in " + noun + "; " +
          (entry.key() == "<<" ? "merge keys are not supported, an anchor on a value is; " : "") +
          accepted_words(entry.key(), accepted));
}

const YamlNode* YamlMap::find(const std::string& key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const YamlNode& entry) { return entry.key() == key; });
  return found == entries_.end() ? nullptr : &*found;
}

const YamlNode& YamlMap::need(const std::string& key) const {
  const YamlNode* found = find(key);
  if (found == nullptr) throw UsageError(node_.place() + noun_ + " needs the key '" + key + "'");
  return *found;
}

}  // namespace shardmark
