// Checks paths and disk space.
#include "train/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/units.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

// Checks the name of the temporary file, too, which is written first.
void require_short_name(const std::string& file, const std::string& flag) {
  if (fs::path(path_beside(file)).filename().string().size() > NAME_MAX)
    throw UsageError(fmt::format("{}: {}", flag, std::strerror(ENAMETOOLONG)));
}

void require_room(const std::string& directory, int64_t bytes, const std::string& flag,
                  const std::string& what) {
  struct statvfs disk;
  if (::statvfs(directory.c_str(), &disk) != 0 || disk.f_blocks == 0) return;  // the system does not tell
  const double room = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) > room)
    throw UsageError(
        fmt::format("{}: {} need {}, and the disk of {} has {} left; make room or name another place", flag,
                    what, format_bytes(static_cast<double>(bytes)), directory, format_bytes(room)));
}

bool same_disk(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

// One checkpoint is written after the last step, whatever the interval.
int64_t num_checkpoints(const TrainingOptions& options, int64_t first_step) {
  const int64_t every = options.run.checkpoint_every, last = options.num_steps;
  if (first_step >= last) return 0;
  return every == 0 ? 1 : (last + every - 1) / every - first_step / every;
}

}  // namespace

void check_outputs(const TrainingOptions& options, int64_t first_step) {
  const std::string& checkpoints = options.run.checkpoint;
  int64_t kept_bytes = 0;  // growth of the checkpoints until the weights are written
  if (!checkpoints.empty()) {
    require_writable_directory(checkpoints, "--checkpoint");
    const auto growth = Checkpoints(checkpoints).growth(num_checkpoints(options, first_step));
    const int64_t bytes = state_bytes(options.point, State::all);
    require_room(checkpoints, growth.most * bytes, "--checkpoint", "the checkpoints");
    kept_bytes = growth.last * bytes;
  }
  if (!options.run.trace.empty()) require_writable_directory(options.run.trace, "--trace");
  if (options.run.save_weights.empty()) return;
  require_regular(options.run.save_weights);
  require_short_name(options.run.save_weights, "--save-weights");
  const std::string weights = follow_links(options.run.save_weights), directory = directory_of(weights);
  require_writable_directory(directory, "--save-weights");
  remove_abandoned(weights);  // it takes up space
  const bool shared = !checkpoints.empty() && same_disk(checkpoints, directory);
  require_room(directory, state_bytes(options.point, State::weights) + (shared ? kept_bytes : 0),
               "--save-weights", shared ? "checkpoints and weights" : "the weights");
}

}  // namespace shardmark
