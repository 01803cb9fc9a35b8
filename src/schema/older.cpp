#include "schema/older.h"

#include "schema/imported.h"

namespace shardmark {
namespace {

constexpr const char *kBefore = "mpi", *kNow = "pt2pt";

}  // namespace

Older::Older(int minor, const Environment& environment)
    : renames_mpi_(minor < 11 && !is_imported(environment)) {}

void Older::renew(Environment& environment) const {
  if (renames_mpi_ && environment.transport == kBefore) environment.transport = kNow;
}

void Older::renew(Record& record) {
  if (!renames_mpi_ || record.point.transport != kBefore) return;
  // A journal may come from anywhere: a point of a workload that nobody knows has no id of ours.
  const bool is_named_by_it = is_known_workload(record.point) && record.id == point_id(record.point);
  record.point.transport = kNow;
  if (!is_named_by_it) return;
  const std::string id = point_id(record.point);
  ids_[record.id] = id;
  record.id = id;
}

void Older::renew(std::string& id) const {
  const auto found = ids_.find(id);
  if (found != ids_.end()) id = found->second;
}

}  // namespace shardmark
