// A strict view of YAML: every value knows its place in the file and the key it belongs to, so that every
// mistake is one line "suites/x.yaml:7:12: batch_size: expected a whole number, got 'four'".
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark {

// Anchors and aliases work (an alias reports the place of its anchor). Merge keys (<<), tags and several
// documents in one file are errors. `true` and `false` are the only booleans; a quoted number is text.
class YamlNode {
 public:
  // The whole file. UsageError where it is no YAML, empty (what: it should be), or more than one document.
  static YamlNode parse(const std::string& text, const std::string& path,
                        const std::string& what = "a suite is a map with 'training' or 'collectives'");

  // "suites/x.yaml:7:12: "; of the key where there is no value.
  std::string place() const { return place_of(is_null() && key_node_.IsScalar() ? key_node_ : node_); }
  [[noreturn]] void fail(const std::string& message) const;  // UsageError: place, key, message
  const std::string& key() const { return key_; }

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool is_null() const { return node_.IsNull(); }
  bool is_empty() const { return node_.size() == 0; }  // of a list or map
  bool is_quoted() const { return node_.IsScalar() && node_.Tag() == "!"; }

  std::string text() const;  // of a scalar, as written, without quotes
  bool boolean() const;
  // By a kind of value (base/value.h) and its range. A quoted number is a text, and no number.
  template <class Kind>
  auto value(const Kind& kind) const {
    constexpr bool kIsNumber = std::is_same_v<Kind, Whole> || std::is_same_v<Kind, Real>;
    if (!node_.IsScalar() || (kIsNumber && is_quoted()))
      fail("expected " + kind.expected() + ", got " + describe());
    try {
      return kind.parse(node_.Scalar());
    } catch (const UsageError& error) {
      fail(error.what());
    }
  }

  // An axis: the items of a list, or the value alone. Never empty, never a list in a list.
  std::vector<YamlNode> items() const;
  // Of a map, in the order of the file; each value carries its key. A key that comes twice is an error.
  std::vector<YamlNode> entries() const;
  // The place of the key itself, for values from entries().
  std::string key_place() const { return place_of(key_node_); }

  std::string describe() const;  // "'four'", "a list", "a map", "nothing": what was found, for messages

 private:
  YamlNode(const YAML::Node& node, std::string path, std::string key);
  std::string place_of(const YAML::Node& node) const;

  YAML::Node node_;
  YAML::Node key_node_;
  std::string path_;
  std::string key_;
};

// A map whose keys are known beforehand; any other is an error that lists them.
class YamlMap {
 public:
  // noun: what the map describes, "training": "unknown key 'stratgy' in training; did you mean 'strategy'?
  // accepted: ..."
  YamlMap(const YamlNode& node, const std::string& noun, const std::vector<std::string>& accepted);
  const YamlNode* find(const std::string& key) const;  // nullptr where it is absent
  const YamlNode& need(const std::string& key) const;
  const YamlNode& node() const { return node_; }

 private:
  YamlNode node_;
  std::string noun_;
  std::vector<YamlNode> entries_;
};

// What a suite's file holds. UsageError ends with the advice.
std::string read_text(const std::string& path, const std::string& advice);

}  // namespace shardmark
