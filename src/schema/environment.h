// The Environment of a study: where and how it was made.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shardmark {

// A JSON object that can be a member of a struct while the header needs only the forward declarations of the
// JSON library. The library's full headers are large, and many files include the headers that use this one.
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

// Lists hold one entry per node or rank.
struct Environment {
  std::string command_line;
  std::string revision;    // output of git describe
  std::string suite_text;  // the YAML text that was read
  std::string suite_path;
  std::string started;  // ISO 8601, UTC
  std::string transport;
  int64_t world_ranks = 0;
  int64_t order_seed = 0;  // seed of the shuffled order of points
  int64_t threads_per_rank = 1;
  std::vector<std::string> nodes;       // host name of each node
  std::vector<std::string> devices;     // name of each rank's device
  std::vector<std::string> rank_nodes;  // host name of each rank
  JsonObject versions;                  // library -> version
  JsonObject variables;                 // allow-listed environment variables
  JsonObject facts;                     // cores, memory, processor, peak FLOP/s ...
};

}  // namespace shardmark
