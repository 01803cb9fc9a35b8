// A JSON object as a member: the JSON library, which is large, stays out of the headers that hold one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace shardmark {

class JsonObject {
 public:
  JsonObject();  // {}
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;
  JsonObject& operator=(JsonObject other) noexcept;
  ~JsonObject();

  nlohmann::ordered_json& operator*() { return *json_; }
  const nlohmann::ordered_json& operator*() const { return *json_; }

 private:
  std::unique_ptr<nlohmann::ordered_json> json_;
};

}  // namespace shardmark
