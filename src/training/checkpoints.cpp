// Finding, checking, writing and removing checkpoints.
#include "training/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRun = "run";  // key of the metadata
constexpr const char* kFirst = "step-";
constexpr const char* kLast = ".safetensors";
constexpr size_t kKept = 2;

nlohmann::ordered_json to_json(const RunIdentity& identity) {
  return {{"model", identity.model},         {"data", identity.data},
          {"optimizer", identity.optimizer}, {"optimizer_state", identity.optimizer_state},
          {"seed", identity.seed},           {"global_batch", identity.global_batch},
          {"samples", identity.num_samples}};
}

nlohmann::ordered_json run_of(const SafetensorsFile& checkpoint) {
  const auto found = checkpoint.metadata().find(kRun);
  if (found == checkpoint.metadata().end())
    throw UsageError("'" + checkpoint.path() +
                     "' holds weights, but is no checkpoint of a run; start from them with --weights");
  return nlohmann::ordered_json::parse(found->second);
}

}  // namespace

std::vector<Checkpoints::Found> Checkpoints::found() const {
  std::vector<Found> files;
  std::error_code none;  // no such directory: no checkpoints
  for (const auto& entry : fs::directory_iterator(directory_, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFirst) || !name.ends_with(kLast)) continue;
    files.push_back(
        {std::atoll(name.c_str() + std::char_traits<char>::length(kFirst)), entry.path().string()});
  }
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return files;
}

void Checkpoints::start() const {
  const auto files = found();
  if (!files.empty())
    throw UsageError(
        fmt::format("{} holds checkpoints up to step {}; go on with --resume, or choose another "
                    "directory",
                    directory_, files.front().step));
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw UsageError("cannot make the directory " + directory_ + ": " + error.message());
}

std::optional<SafetensorsFile> Checkpoints::newest() const {
  const auto files = found();
  std::string trouble;
  for (const auto& [step, path] : files) {
    try {
      SafetensorsFile file(path);
      if (!file.has_checksum()) throw UsageError("'" + path + "' is damaged: it has lost its checksum");
      file.verify();
      if (!trouble.empty()) log_warning(fmt::format("{}; going on from step {}", trouble, step));
      return file;
    } catch (const UsageError& error) {
      trouble += (trouble.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!files.empty()) throw UsageError("no checkpoint to go on from: " + trouble);
  start();
  return {};
}

std::string Checkpoints::write(int64_t step, const RunIdentity& identity, const Trainee& trainee,
                               bool writes) const {
  nlohmann::ordered_json run = to_json(identity);
  run["step"] = step;
  const std::string path = fmt::format("{}/{}{:09}{}", directory_, kFirst, step, kLast);
  std::string trouble =
      write_state(path, trainee, State::all, {{"format", "pt"}, {kRun, run.dump()}}, writes);
  if (writes && trouble.empty()) remove_old();
  return trouble;
}

void Checkpoints::remove_old() const {
  const auto files = found();
  std::error_code ignored;  // an old file more does no harm
  for (size_t i = kKept; i < files.size(); ++i) fs::remove(files[i].path, ignored);
}

int64_t step_of(const SafetensorsFile& checkpoint) { return run_of(checkpoint).at("step"); }
int64_t global_batch_of(const SafetensorsFile& checkpoint) { return run_of(checkpoint).at("global_batch"); }

void check_identity(const SafetensorsFile& checkpoint, const RunIdentity& identity) {
  const auto before = run_of(checkpoint), now = to_json(identity);
  for (const auto& [key, value] : now.items())
    if (before.at(key) != value)
      throw UsageError(fmt::format("'{}' is of another run: {} was {}, and is {} now", checkpoint.path(), key,
                                   before.at(key).dump(), value.dump()));
}

}  // namespace shardmark
