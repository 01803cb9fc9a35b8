// What the report was made from: each study with its place, time, revision and number of points by outcome.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"

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

auto words_of(std::string Environment::*member) {
  return [member](const StudyData& study) { return cells::words(study.environment.*member); };
}

auto count_where(bool (*holds)(const Record&, Outcome), Outcome outcome = Outcome::ok) {
  return [=](const StudyData& study) {
    const auto count = std::count_if(study.records.begin(), study.records.end(),
                                     [&](const Record& record) { return holds(record, outcome); });
    return count == 0 ? Cell{"", 0} : cells::count(count);  // people need no zeros
  };
}

ColumnsOf<StudyData> columns() {
  ColumnsOf<StudyData> columns = {
      {{"study", "", false}, [](const auto& study) { return cells::words(study.path); }},
      {{"suite", "", false, true}, words_of(&Environment::suite_path)},
      {{"started", "", false, true}, words_of(&Environment::started)},
      {{"revision", "", false, true}, words_of(&Environment::revision)},
      {{"nodes", "", false, true},
       [](const auto& study) {
         const auto& nodes = study.environment.nodes;
         return cells::words(nodes.empty() ? "" : nodes_text(nodes));
       }},
      {{"devices", "", false, true},
       [](const auto& study) { return cells::words(devices_text(study.environment.devices)); }},
      {{"ranks", "", true, true},
       [](const auto& study) { return cells::count(study.environment.world_ranks); }},
      {{"threads per rank", "", true, true},
       [](const auto& study) {
         const int64_t threads = study.environment.threads_per_rank;  // 0: imported, and not said
         return threads == 0 ? Cell{"", nullptr} : cells::count(threads);
       }},
      {{"transport", "", false, true}, words_of(&Environment::transport)},
      {{"points", ""}, [](const auto& study) { return cells::count(std::ssize(study.records)); }}};
  for (const Outcome outcome : kOutcomes)
    columns.push_back(
        {{std::string(to_text(outcome)), "", true, outcome != Outcome::ok},
         count_where([](const auto& record, Outcome o) { return record.outcome == o; }, outcome)});
  columns.push_back({{"to go", "", true, true},
                     [](const auto& study) {
                       return study.num_to_go ? cells::count(*study.num_to_go) : Cell{"", nullptr};
                     },
                     "points of an unfinished study that are still to be measured."});
  columns.push_back({{"second attempts", "", true, true},
                     count_where([](const auto& record, Outcome) { return record.attempts > 1; })});
  return columns;
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
  Table table = make_table("studies", studies.size() == 1 ? "Study" : "Studies", columns(), studies);
  if (num_distinct(studies, [](const Environment& e) { return e.revision; }) > 1)
    table.notes.emplace_back(
        "Caution: these studies were made by different revisions of shardmark; equal points are merged "
        "nevertheless.");
  if (const int64_t unknown = num_unknown(studies); unknown > 0)
    table.notes.push_back(
        fmt::format("{} point{} of a kind unknown to this version: left out of all tables below.", unknown,
                    unknown == 1 ? " is" : "s are"));
  if (num_distinct(studies, [](const Environment& e) { return machine_text(e); }) > 1)
    table.notes.emplace_back(
        "These studies come from different machines (devices or threads per rank): their points are kept "
        "apart.");
  return table;
}

}  // namespace shardmark
