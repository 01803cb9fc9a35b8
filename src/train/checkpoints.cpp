// Finds, checks, writes and removes checkpoints.
#include "train/checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRun = "run";                                   // key in the metadata
constexpr const char *kContent = "content", *kSettings = "settings";  // keys in the run
constexpr const char* kFirst = "step-";
constexpr const char* kLast = ".safetensors";
constexpr const char* kTemporary = ".tmp";
constexpr size_t kKept = 2;

nlohmann::ordered_json to_json(const RunIdentity& identity) {
  return {{"model", identity.model},         {"data", identity.data},
          {"optimizer", identity.optimizer}, {"optimizer_state", identity.optimizer_state},
          {"seed", identity.seed},           {"global_batch", identity.global_batch},
          {"samples", identity.num_samples}, {kContent, identity.content},
          {kSettings, identity.settings}};
}

// Returns the run that the metadata describe, checked against the keys and types that this program writes,
// so that the callers need no checks. `content` and `settings` came later: files of earlier versions have
// neither.
nlohmann::ordered_json run_of(const SafetensorsFile& checkpoint) {
  const auto found = checkpoint.metadata().find(kRun);
  if (found == checkpoint.metadata().end())
    throw UsageError("'" + checkpoint.path() +
                     "' holds weights, but is not a checkpoint of a run; start from them with --weights");
  auto run = nlohmann::ordered_json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  nlohmann::ordered_json wanted = to_json({});
  wanted["step"] = 0;
  for (const char* later : {kContent, kSettings})
    if (run.is_object() && !run.contains(later)) wanted.erase(later);
  for (const auto& [key, value] : wanted.items())
    if (!run.is_object() || !run.contains(key) || std::string(run.at(key).type_name()) != value.type_name())
      throw UsageError("'" + checkpoint.path() +
                       "' is not a checkpoint of this program: its metadata is damaged");
  return run;
}

std::string text_of(const nlohmann::ordered_json& setting) {
  return setting.is_string() ? setting.get<std::string>() : setting.dump();
}

}  // namespace

bool Checkpoints::is_name(const std::string& name) {
  return name.starts_with(kFirst) && name.ends_with(kLast);
}

std::vector<Checkpoints::Found> Checkpoints::found() const {
  std::vector<Found> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_name(name)) continue;
    files.push_back(
        {std::atoll(name.c_str() + std::char_traits<char>::length(kFirst)), entry.path().string()});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw UsageError("cannot read the directory " + directory_ + ": " + error.message());
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return files;
}

// The lock is on the directory itself, and ends when the returned file is closed or the process dies. A
// file system without locks leaves the directory unguarded. Temporary files can be removed once the lock is
// held: their writer is gone.
File Checkpoints::claim() const {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw UsageError("cannot make the directory " + directory_ + ": " + error.message());
  File directory = open_if_exists(directory_, O_RDONLY | O_DIRECTORY);
  if (lock_file(directory, directory_) == Lock::held_by_another)
    throw UsageError("another run writes its checkpoints to " + directory_ +
                     "; wait for its end, or choose another directory");
  for (const auto& entry : fs::directory_iterator(directory_, error)) {  // left by a run that was killed
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFirst) && name.ends_with(kTemporary)) fs::remove(entry.path(), error);
  }
  return directory;
}

void Checkpoints::start() const {
  const auto files = found();
  if (!files.empty())
    throw UsageError(
        fmt::format("{} holds checkpoints up to step {}; go on with --resume, or choose another "
                    "directory",
                    directory_, files.front().step));
}

// A checkpoint always has a checksum, so that one without it was damaged. The older of the two kept files
// is what a run falls back on if the newest one is damaged.
std::optional<SafetensorsFile> Checkpoints::newest() const {
  const auto files = found();
  std::string trouble;
  for (const auto& [step, path] : files) {
    try {
      SafetensorsFile file(path);
      if (!file.has_checksum()) throw UsageError("'" + path + "' is damaged: its checksum is missing");
      file.verify();
      if (!trouble.empty()) log_warning(fmt::format("{}; continuing from step {}", trouble, step));
      return file;
    } catch (const UsageError& error) {
      trouble += (trouble.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!files.empty()) throw UsageError("no checkpoint to continue from: " + trouble);
  return {};
}

std::string Checkpoints::write(int64_t step, const RunIdentity& identity, const TrainingSetup& setup,
                               bool writes) const {
  nlohmann::ordered_json run = to_json(identity);
  run["step"] = step;
  const std::string path = fmt::format("{}/{}{:09}{}", directory_, kFirst, step, kLast);
  std::string trouble = write_state(path, setup, State::all, {{"format", "pt"}, {kRun, run.dump()}}, writes);
  // Old files go only after the new one is complete and on the disk.
  if (writes && trouble.empty()) remove_old(step);
  return trouble;
}

void Checkpoints::remove_old(int64_t step) const {
  auto files = found();
  // Files of later steps were damaged, because newest() skipped them.
  std::erase_if(files, [&](const Found& file) { return file.step > step; });
  std::error_code ignored;  // a file too many does no harm
  for (size_t i = kKept; i < files.size(); ++i) fs::remove(files[i].path, ignored);
}

Checkpoints::Growth Checkpoints::growth(int64_t num_writes) const {
  const int64_t before = std::ssize(found()), kept = kKept;
  const auto more = [&](int64_t most) {
    return std::max<int64_t>(0, std::min(before + num_writes, most) - before);
  };
  return {more(kept + 1), more(kept)};  // the new one is written before an old one goes
}

int64_t step_of(const SafetensorsFile& checkpoint) { return run_of(checkpoint).at("step"); }
int64_t global_batch_of(const SafetensorsFile& checkpoint) { return run_of(checkpoint).at("global_batch"); }

void check_identity(const SafetensorsFile& checkpoint, const RunIdentity& identity) {
  // Model, data, optimizer, seed, batch and samples decide which numbers a run computes: they must be
  // equal. Settings may be changed on purpose, so that they are only reported.
  const auto before = run_of(checkpoint), now = to_json(identity);
  for (const auto& [key, value] : now.items())
    if (key != kContent && key != kSettings && before.at(key) != value)
      throw UsageError(fmt::format("'{}' is of another run: {} was {}, and is {} now", checkpoint.path(), key,
                                   before.at(key).dump(), value.dump()));
  if (before.contains(kContent) && before.at(kContent) != identity.content)
    throw UsageError(fmt::format(
        "'{}' is of a run on other data: the files of {} hold other bytes now (hash {}, was {}); put the "
        "former "
        "ones back, or start on these from the weights alone, in another directory: --weights {}",
        checkpoint.path(), identity.data, identity.content, text_of(before.at(kContent)), checkpoint.path()));
  if (!before.contains(kSettings)) return;
  for (const auto& [key, was] : before.at(kSettings).items())
    if (const auto is = identity.settings.find(key); is != identity.settings.end() && *is != was)
      log_warning(
          fmt::format("{} was {} up to step {}, and is {} from here on: the run differs from one that "
                      "had this from its start",
                      key, text_of(was), before.at("step").get<int64_t>(), text_of(*is)));
}

}  // namespace shardmark
