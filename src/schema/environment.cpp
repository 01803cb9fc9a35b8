#include "schema/environment.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shardmark {

JsonObject::JsonObject()
    : json_(std::make_unique<nlohmann::ordered_json>(nlohmann::ordered_json::object())) {}
JsonObject::JsonObject(const JsonObject& other) : json_(std::make_unique<nlohmann::ordered_json>(*other)) {}
JsonObject::JsonObject(JsonObject&& other) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject other) noexcept {
  std::swap(json_, other.json_);
  return *this;
}
JsonObject::~JsonObject() = default;

}  // namespace shardmark
