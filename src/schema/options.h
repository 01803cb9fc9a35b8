// The options of a choice: pairs of name and value, in the order in which they were given.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace shardmark {

// The value of an option: an integer, a number, a boolean, a text, or nothing. 1 and 1.0 are equal.
class OptionValue {
 public:
  OptionValue() = default;
  OptionValue(std::nullptr_t) {}
  OptionValue(bool value) : value_(value) {}
  OptionValue(std::integral auto value) : value_(static_cast<int64_t>(value)) {}
  OptionValue(double value) : value_(value) {}
  OptionValue(const char* value) : value_(std::string(value)) {}
  OptionValue(std::string value) : value_(std::move(value)) {}

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  bool is_nothing() const { return is<std::monostate>(); }
  bool is_number() const { return is<int64_t>() || is<double>(); }

  // Integers convert to numbers. Throws ContractError if the value is of another type.
  template <class T>
  T get() const {
    if constexpr (std::same_as<T, bool> || !std::integral<T>) {
      if constexpr (std::same_as<T, double>)
        if (is<int64_t>()) return static_cast<double>(std::get<int64_t>(value_));
      ENSURE(is<T>(), "an option's value is of another type");
      return std::get<T>(value_);
    } else {
      ENSURE(is<int64_t>(), "an option's value is of another type");
      return static_cast<T>(std::get<int64_t>(value_));
    }
  }

  friend bool operator==(const OptionValue& a, const OptionValue& b) {
    if (a.is_number() && b.is_number() && a.value_.index() != b.value_.index())
      return a.get<double>() == b.get<double>();
    return a.value_ == b.value_;
  }

  // Calls visit with the value: std::monostate, bool, int64_t, double or std::string.
  template <class Visit>
  auto visit(Visit&& visit) const {
    return std::visit(std::forward<Visit>(visit), value_);
  }

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string> value_;
};

class Options {
 public:
  Options() = default;
  Options(std::initializer_list<std::pair<std::string, OptionValue>> values) : values_(values) {}

  const OptionValue* find(const std::string& key) const {
    for (const auto& [name, value] : values_)
      if (name == key) return &value;
    return nullptr;
  }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  const OptionValue& at(const std::string& key) const {
    const OptionValue* const found = find(key);
    ENSURE(found != nullptr, "no option '" + key + "'");
    return *found;
  }
  // Adds the option without a value if it is missing.
  OptionValue& operator[](const std::string& key) {
    for (auto& [name, value] : values_)
      if (name == key) return value;
    return values_.emplace_back(key, OptionValue()).second;
  }

  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool operator==(const Options&) const = default;

 private:
  std::vector<std::pair<std::string, OptionValue>> values_;
};

}  // namespace shardmark
