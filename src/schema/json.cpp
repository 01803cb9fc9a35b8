// Converts records and environments to JSON and back by visiting the field table: every column is one key.
#include "schema/json.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "schema/fields.h"
#include "schema/stored.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(Flag flag) { return flag == Flag::yes; }
template <class T>
Json json_of(const T& value) {
  return value;
}

void from_json_value(const Json& json, double& number) {
  if (json.is_null())
    number = std::numeric_limits<double>::quiet_NaN();
  else if (json.is_string())
    number =
        json == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  else
    json.get_to(number);
}
void from_json_value(const Json& json, int64_t& number) { number = whole_number(json); }
void from_json_value(const Json& json, JsonObject& object) { *object = json; }
void from_json_value(const Json& json, Flag& flag) { flag = json.get<bool>() ? Flag::yes : Flag::no; }
template <class T>
void from_json_value(const Json& json, T& value) {
  json.get_to(value);
}

// Calls read(value) if the object has the key. Files list keys in the order of the table, so the next key of
// the object is tried before all keys are searched.
class KeyReader {
 public:
  explicit KeyReader(const Json& object) : object_(object), next_(object.begin()) {
    if (!object.is_object())
      throw UsageError("expected a JSON object, found " + std::string(object.type_name()));
  }
  template <class Read>
  void operator()(const char* key, Read read) {
    auto found = next_ != object_.end() && next_.key() == key ? next_ : object_.find(key);
    if (found == object_.end()) return;
    try {
      read(found.value());
    } catch (const Json::exception&) {
      throw UsageError("'" + std::string(key) + "' has the wrong type: " + found.value().type_name());
    }
    next_ = ++found;
  }

 private:
  const Json& object_;
  Json::const_iterator next_;
};

}  // namespace

Json json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? Json() : Json(number > 0 ? "inf" : "-inf");
}

Json to_json(const Record& record) {
  Json json = Json::object();
  auto& object = json.get_ref<Json::object_t&>();  // keys are distinct, so they are added without a search
  visit_fields(record, [&](const char* name, const char*, const char*, const auto& member) {
    object.push_back({name, json_of(to_stored(member))});
  });
  return json;
}

Record record_from_json(const Json& json) {
  Record record;
  KeyReader read(json);
  visit_fields(record, [&](const char* name, const char*, const char*, auto& member) {
    const auto store = [&](const Json& value) {
      auto stored = to_stored(member);
      from_json_value(value, stored);
      from_stored(stored, member);
    };
    read(name, store);
  });
  return record;
}

Json to_json(const Environment& environment) {
  Json json = Json::object();
  const auto visit = [&](const char* name, const char*, const char*, const auto& member) {
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, JsonObject>)
      json[name] = *member;
    else
      json[name] = member;
  };
  visit_provenance(environment, visit);
  visit_environment(environment, visit);
  return json;
}

Environment environment_from_json(const Json& json) {
  Environment environment;
  KeyReader read(json);
  const auto visit = [&](const char* name, const char*, const char*, auto& member) {
    read(name, [&](const Json& value) { from_json_value(value, member); });
  };
  visit_provenance(environment, visit);
  visit_environment(environment, visit);
  return environment;
}

Json to_json(const OptionValue& value) {
  return value.visit([]<class T>(const T& held) {
    if constexpr (std::is_same_v<T, std::monostate>)
      return Json();
    else
      return Json(held);
  });
}

Json to_json(const Options& options) {
  Json json = Json::object();
  for (const auto& [key, value] : options) json[key] = to_json(value);
  return json;
}

OptionValue option_value(const Json& json) {
  const bool is_too_large = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer() && !is_too_large) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return dump_line(json);
}

// get<int64_t>() would silently convert a fraction, or a number that does not fit into 64 bits.
int64_t whole_number(const Json& json) { return json.get_ref<const Json::number_integer_t&>(); }

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace shardmark
