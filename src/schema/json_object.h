// A JSON object that can be a member of a struct while the header needs only the forward declarations of the
// JSON library. The library's full headers are large, and many files include the headers that use this one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace shardmark {

class JsonObject {
 public:
  JsonObject();  // an empty object
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
