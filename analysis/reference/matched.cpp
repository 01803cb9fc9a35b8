// Files, then studies of the device, then records of the points.
#include "analysis/reference/matched.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "analysis/frame/launches.h"
#include "base/error.h"
#include "base/log.h"
#include "schema/file.h"
#include "schema/published.h"

namespace shardmark {
namespace {

// The devices in a machine_text(), without the threads that follow them.
std::string without_threads(const std::string& machine) {
  const size_t end = machine.find(" per rank");
  return end == std::string::npos ? machine : machine.substr(0, machine.rfind(", ", end));
}

// On GPUs, whose default transport is nccl, the threads of a rank compute nothing.
std::string device_key(const Environment& e) {
  const std::string machine = machine_text(e);
  return (e.transport.starts_with("nccl") ? without_threads(machine) : machine) + " over " + e.transport;
}

using PointOfCollection = std::tuple<std::string, std::string, int64_t, int64_t>;

PointOfCollection collection_key(const MergedPoint& merged) {
  return {content_id(merged.point), merged.point.training.chosen, merged.nodes, merged.ranks_per_node};
}

using RecordName = std::tuple<std::string, std::string, double>;  // a copy has the same

RecordName record_name(const Record& record) { return {record.id, record.started, record.measures.step_s}; }

bool has_result(const Record& record) {
  return record.outcome == Outcome::ok && is_known_workload(record.point) && record.point.workload != "train";
}

// The points of the given studies, which are looked for in the collection, and the names of their records.
struct Wanted {
  std::set<PointOfCollection> points;
  std::set<RecordName> records;

  explicit Wanted(const std::vector<StudyData>& studies) {
    for (const StudyData& study : studies)
      for (const Record& record : study.records) {
        if (!has_result(record)) continue;
        points.insert(collection_key(as_merged(record, study.environment)));
        records.insert(record_name(record));
      }
  }
};

// What the collection is searched for.
struct Devices {
  std::set<std::string> keys, names;

  explicit Devices(const std::vector<StudyData>& studies) {
    for (const StudyData& study : studies) {
      keys.insert(device_key(study.environment));
      names.insert(study.environment.devices.begin(), study.environment.devices.end());
    }
  }
  // HDF5 keeps texts as they are, so a file without a device's name has no such device: that is known without
  // the library and the file's checksum, which take most of the time of a short report.
  bool are_in(const std::string& file) const {
    const auto bytes = read_input(file, kMostStudyBytes);
    const bool has_name = bytes && std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                            return bytes->find(name) != std::string::npos;
                          });
    return has_name && keys.contains(device_key(read_published_environment(file)));
  }
};

void take(const Wanted& wanted, const std::string& file, References& found) {
  StudyData study = read_study(file, Load::without_samples);
  // A study that is in the collection itself must not be its own reference.
  const size_t num_own = std::erase_if(
      study.records, [&](const Record& record) { return wanted.records.contains(record_name(record)); });
  found.holds_them |= num_own > 0;
  found.is_device_known |= !study.records.empty();
  std::erase_if(study.records, [&](const Record& record) {
    return !has_result(record) ||
           !wanted.points.contains(collection_key(as_merged(record, study.environment)));
  });
  if (!study.records.empty()) found.studies.push_back(std::move(study));
}

const StudyData* reference_study(const Record* record, const References& references) {
  for (const StudyData& study : references.studies)
    if (record >= study.records.data() && record < study.records.data() + study.records.size()) return &study;
  throw ContractError("a record of no reference");
}

}  // namespace

std::string device_of(const MergedPoint& merged) { return without_threads(merged.machine); }

std::vector<std::string> study_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none))
    if (file.path().extension() == ".h5") files.push_back(file.path());
  std::sort(files.begin(), files.end());
  return files;
}

References references_for(const std::vector<StudyData>& studies, const std::vector<std::string>& files) {
  const Devices devices(studies);
  std::optional<Wanted> wanted;  // made for a device that is there: it takes longer than to look for one
  References found;
  for (const std::string& file : files) try {
      if (!devices.are_in(file)) continue;
      if (!wanted) wanted.emplace(studies);
      take(*wanted, file, found);
    } catch (const UsageError& error) {
      log_warning(std::string("a study of the reference collection is left out: ") + error.what());
    }
  return found;
}

ReferenceMatches::ReferenceMatches(const std::vector<MergedPoint>& points, const References& references)
    : merged(merge_repeats(references.studies)) {
  if (merged.empty()) return;
  std::map<std::pair<PointOfCollection, std::string>, const MergedPoint*> most;  // by point and device
  for (const MergedPoint& there : merged) {
    const MergedPoint*& best =
        most.try_emplace({collection_key(there), device_key(*there.environments.front())}, &there)
            .first->second;
    if (there.repeats > best->repeats) best = &there;
  }
  for (const MergedPoint& here : points) {
    const auto found = most.find({collection_key(here), device_key(*here.environments.front())});
    if (found == most.end()) continue;
    const MergedPoint& there = *found->second;
    this->points.push_back({&here, &there, reference_study(there.records.front(), references),
                            quotient(step_estimate(there.measures), step_estimate(here.measures))});
  }
}

}  // namespace shardmark
