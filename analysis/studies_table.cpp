// What the report was made from: each study with its place, time, revision and number of points by outcome.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/cells.h"
#include "analysis/tables.h"

namespace shardmark {
namespace {

constexpr std::array kOutcomes = {Outcome::ok,    Outcome::skipped, Outcome::out_of_memory,
                                  Outcome::wrong, Outcome::failed,  Outcome::timed_out};

// "2 (node1, node2)"; of many only the first and the last.
std::string nodes_text(const std::vector<std::string>& nodes) {
  if (nodes.size() <= 4) return fmt::format("{} ({})", nodes.size(), fmt::join(nodes, ", "));
  return fmt::format("{} ({} ... {})", nodes.size(), nodes.front(), nodes.back());
}

// "8 x NVIDIA H200": every rank has a device.
std::string devices_text(const std::vector<std::string>& devices) {
  std::map<std::string, size_t> counts;
  for (const std::string& device : devices) ++counts[device];
  std::string text;
  for (const auto& [device, count] : counts)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, device);
  return text;
}

std::vector<Column> columns() {
  std::vector<Column> columns = {{"study", "", false},           {"suite", "", false, true},
                                 {"started", "", false, true},   {"revision", "", false, true},
                                 {"nodes", "", false, true},     {"devices", "", false, true},
                                 {"ranks", "", true, true},      {"threads per rank", "", true, true},
                                 {"transport", "", false, true}, {"points", ""}};
  for (Outcome outcome : kOutcomes)
    columns.push_back({std::string(to_text(outcome)), "", true, outcome != Outcome::ok});
  columns.push_back({"second attempts", "", true, true});
  return columns;
}

std::vector<Cell> row(const StudyData& study) {
  const Environment& e = study.environment;
  std::vector<Cell> cells = {cells::words(study.path),
                             cells::words(e.suite_path),
                             cells::words(e.started),
                             cells::words(e.revision),
                             cells::words(e.nodes.empty() ? "" : nodes_text(e.nodes)),
                             cells::words(devices_text(e.devices)),
                             cells::count(e.world_ranks),
                             cells::count(e.threads_per_rank),
                             cells::words(e.transport),
                             cells::count(static_cast<int64_t>(study.records.size()))};
  std::array<int64_t, kOutcomes.size()> counts = {};
  for (const Record& record : study.records) ++counts[static_cast<size_t>(record.outcome)];
  for (Outcome outcome : kOutcomes) cells.push_back(cells::count(counts[static_cast<size_t>(outcome)]));
  cells.push_back(cells::count(std::count_if(study.records.begin(), study.records.end(),
                                             [](const Record& record) { return record.attempts > 1; })));
  return cells;
}

int64_t num_unknown(const std::vector<StudyData>& studies) {
  int64_t unknown = 0;
  for (const StudyData& study : studies)
    unknown += std::count_if(study.records.begin(), study.records.end(),
                             [](const Record& record) { return !is_known_workload(record.point); });
  return unknown;
}

template <class Member>
size_t num_distinct(const std::vector<StudyData>& studies, Member member) {
  std::set<std::string> values;
  for (const StudyData& study : studies) values.insert(member(study.environment));
  return values.size();
}

}  // namespace

Table studies_table(const std::vector<StudyData>& studies) {
  Table table{"studies", studies.size() == 1 ? "Study" : "Studies", {}, columns(), {}, 0};
  for (const StudyData& study : studies) table.rows.push_back(row(study));
  if (num_distinct(studies, [](const Environment& e) { return e.revision; }) > 1)
    table.notes.push_back(
        "Caution: these studies were made by different revisions of shardmark; the same points are merged "
        "all the same.");
  if (const int64_t unknown = num_unknown(studies); unknown > 0)
    table.notes.push_back(
        fmt::format("{} point{} of a kind that this program does not know: left out of every table below.",
                    unknown, unknown == 1 ? " is" : "s are"));
  if (num_distinct(studies, machine_text) > 1)
    table.notes.push_back(
        "These studies come from different machines (devices or threads per rank): their points are kept "
        "apart.");
  return table;
}

}  // namespace shardmark
