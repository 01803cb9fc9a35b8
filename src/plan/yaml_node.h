// A strict view of YAML. Every value knows its place in the file and its key, so that every mistake is
// reported in one line: "suites/x.yaml:7:12: batch_size: expected a whole number, got 'four'".
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark {

// Anchors and aliases are supported (an alias reports the place of its anchor). Merge keys (<<), tags and
// several documents in one file are errors. `true` and `false` are the only booleans; a quoted number is
// text.
class YamlNode {
 public:
  // Parses the whole file. Throws UsageError if it is not valid YAML, is empty (the message says `what` it
  // should be), or has more than one document.
  static YamlNode parse(const std::string& text, const std::string& path,
                        const std::string& what = "a suite is a map with 'training' or 'collectives'");
  // A map of values that were typed on the command line, such as "clip_norm=1", "tensor=[1, 2]" or
  // "sampling.time_limit=5": each value is written as in a file, and a dot leads into a map. The last value
  // of a key counts. Errors have the flag as their place, and keys that are not among `accepted` are errors.
  static YamlNode of_flag(const std::vector<std::string>& texts, const std::string& flag,
                          const std::vector<std::string>& accepted);

  // The place, as "suites/x.yaml:7:12: ". It is that of the key if there is no value.
  std::string place() const { return place_of(is_null() && key_node_.IsScalar() ? key_node_ : node_); }
  [[noreturn]] void fail(const std::string& message) const;  // throws UsageError: place, key, message
  const std::string& key() const { return key_; }

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool is_null() const { return node_.IsNull(); }
  bool is_empty() const { return node_.size() == 0; }  // for lists and maps
  bool is_quoted() const { return node_.IsScalar() && node_.Tag() == "!"; }

  std::string text() const;  // a scalar as it is written, without quotes
  bool boolean() const;
  // Parses a value of a given kind (base/value.h) and checks its range. A quoted number is text and not a
  // number.
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

  // The values of an axis: the items of a list, or the single value. The result is never empty, and no item
  // is a list.
  std::vector<YamlNode> items() const;
  // The entries of a map in the order of the file; each value carries its key. A key that is given twice is
  // an error.
  std::vector<YamlNode> entries() const;
  // The place of the key itself, for values from entries().
  std::string key_place() const { return place_of(key_node_); }

  // What was found, for messages: "'four'", "a list", "a map", "nothing".
  std::string describe() const;

 private:
  // Where a node comes from: lines of a file, or a flag, which has no lines.
  struct Origin {
    std::string name;
    bool has_lines = true;
  };
  YamlNode(const YAML::Node& node, Origin origin, std::string key);
  std::string place_of(const YAML::Node& node) const;

  YAML::Node node_;
  YAML::Node key_node_;
  Origin origin_;
  std::string key_;
};

// A map with a fixed set of accepted keys. Any other key is an error that lists them.
class YamlMap {
 public:
  // `noun` is what the map describes, for messages: "unknown key 'stratgy' in training; did you mean
  // 'strategy'? accepted: ..."
  YamlMap(const YamlNode& node, const std::string& noun, const std::vector<std::string>& accepted);
  const YamlNode* find(const std::string& key) const;  // nullptr if it is missing
  // Throws UsageError if the key is missing.
  const YamlNode& need(const std::string& key) const;
  const YamlNode& node() const { return node_; }

 private:
  YamlNode node_;
  std::string noun_;
  std::vector<YamlNode> entries_;
};

// Returns the content of a suite's file. Throws a UsageError that ends with `advice` if it cannot be read.
std::string read_text(const std::string& path, const std::string& advice);

}  // namespace shardmark
