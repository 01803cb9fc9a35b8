// Checks the files that a run reads and writes: no file may be two of them. Paths are compared by the files
// that they lead to.
#include <fmt/format.h>

#include <sstream>

#include "base/glob.h"
#include "cli/run/train_flags.h"
#include "cli/table_output.h"
#include "schema/journal.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

struct Written {
  std::string flag;
  fs::path path;
  bool replaces = false;  // replaceable with --overwrite
};

std::vector<Written> files_written(const TrainFlags& flags, int64_t ranks) {
  std::vector<Written> files;
  if (!flags.output.empty())
    for (const auto& path : {flags.output, journal_path(flags.output), samples_path(flags.output)})
      files.push_back({"-o", path});
  if (!flags.save_weights.empty()) files.push_back({"--save-weights", flags.save_weights, true});
  if (flags.trace.empty()) return files;
  files.push_back({"--trace", fs::path(flags.trace) / "steps.json", true});
  for (int64_t rank = 0; rank < ranks; ++rank)
    files.push_back({"--trace", fs::path(flags.trace) / fmt::format("rank-{}.json", rank), true});
  return files;
}

std::vector<std::string> files_read(const TrainFlags& flags, const Point& point) {
  const Choice& data = point.training.data;
  const std::string patterns = specs::data_specs().at(data.name).files(data.options);
  std::vector<std::string> files = {flags.file, flags.weights};
  std::istringstream words(patterns);
  for (std::string pattern; words >> pattern;)
    for (std::string& file : glob_near(point.folder, pattern)) files.push_back(std::move(file));
  return files;
}

[[noreturn]] void refuse(const Written& file, const std::string& what) {
  throw UsageError(fmt::format("{} {} {}; name another place", file.flag, file.path.string(), what));
}

}  // namespace

void check_paths(const TrainFlags& flags, const Point& point) {
  const std::vector<Written> written = files_written(flags, point.ranks);
  const std::vector<std::string> read = files_read(flags, point);
  // Every path is resolved to the place where the file really is. Two files at one place are refused, and so
  // is a file that has the name of a checkpoint in the folder of checkpoints, or the place of a folder that
  // is written.
  std::map<fs::path, const Written*> known;
  for (const Written& file : written) {
    const fs::path place = same_file(follow_links(file.path));
    const auto [there, is_new] = known.emplace(place, &file);
    if (!is_new) {
      const Written& other = *there->second;
      refuse(file, fmt::format("is the same file as {} {}", other.flag, other.path.string()));
    }
    if (!flags.checkpoint.empty() && place.parent_path() == same_file(flags.checkpoint) &&
        Checkpoints::is_name(place.filename()))
      refuse(file, "would be taken for a checkpoint in --checkpoint " + flags.checkpoint);
    if (file.replaces) require_free(file.path, flags.overwrite, read);
  }
  for (const auto& [flag, folder] : {std::pair("--checkpoint", flags.checkpoint), {"--trace", flags.trace}}) {
    const auto clash = folder.empty() ? known.end() : known.find(same_file(folder));
    if (clash != known.end()) refuse(*clash->second, fmt::format("is the folder of {}", flag));
  }
}

}  // namespace shardmark
