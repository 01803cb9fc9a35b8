// Creates, resumes, extends, publishes and reads a study: a journal while it runs, an HDF5 file afterwards.
#include "schema/study.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "schema/journal.h"
#include "schema/node_tests.h"
#include "schema/published.h"

namespace shardmark {
namespace {

// The node of each rank, numbered by order of appearance, so that the same topology on other hosts is equal.
std::vector<std::string> topology(const Environment& environment) {
  std::map<std::string, size_t> nodes;
  std::vector<std::string> places;
  places.reserve(environment.rank_nodes.size());
  for (const std::string& node : environment.rank_nodes)
    places.push_back("node " + std::to_string(nodes.emplace(node, nodes.size()).first->second));
  return places;
}

// Collects the differences between the study and the launch that resumes it.
class Differences {
 public:
  template <class T>
  void compare(const std::string& what, const T& before, const T& now) {
    if (before != now) found_.push_back(fmt::format("{} ({}, now {})", what, before, now));
  }
  void compare_ranks(const std::string& what, const std::vector<std::string>& before,
                     const std::vector<std::string>& now) {
    for (size_t rank = 0; rank < std::min(before.size(), now.size()); ++rank)
      if (before[rank] != now[rank])
        return compare(fmt::format("{} of rank {}", what, rank), before[rank], now[rank]);
  }
  // The kernel's version is left out: a requeued job may get nodes with another one.
  void compare_versions(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now) {
    nlohmann::ordered_json names = before;
    names.update(now);
    names.erase("kernel");
    for (const auto& [name, ignored] : names.items())
      compare(name, before.value(name, nlohmann::ordered_json("none")).dump(),
              now.value(name, nlohmann::ordered_json("none")).dump());
  }
  std::string text() const { return fmt::format("{}", fmt::join(found_, ", ")); }

 private:
  std::vector<std::string> found_;
};

std::string difference(const Environment& before, const Environment& now) {
  Differences differences;
  differences.compare("ranks", before.world_ranks, now.world_ranks);
  differences.compare("threads per rank", before.threads_per_rank, now.threads_per_rank);
  differences.compare("transport", before.transport, now.transport);
  differences.compare_ranks("device", before.devices, now.devices);
  differences.compare_ranks("node", topology(before), topology(now));
  differences.compare_versions(*before.versions, *now.versions);
  differences.compare("revision", before.revision, now.revision);
  return differences.text();
}

// The first line in which two texts differ, and how many more differ: `line 7: "repeats: 5" is "repeats: 1"
// now`.
std::string text_difference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  std::string old_line, new_line, first;
  int64_t line = 0, more = -1;
  while (true) {
    const bool is_old = static_cast<bool>(std::getline(old_lines, old_line));
    const bool is_new = static_cast<bool>(std::getline(new_lines, new_line));
    if (!is_old && !is_new) break;
    ++line;
    if (is_old && is_new && old_line == new_line) continue;
    if (++more == 0)
      first = fmt::format("line {}: {} is {} now", line, is_old ? quoted_line(old_line) : "the end",
                          is_new ? quoted_line(new_line) : "the end");
  }
  return more > 0 ? fmt::format("{}, and {} more line{}", first, more, more == 1 ? "" : "s") : first;
}

// Returns the study's environment with the suite and command line of the latest launch. Its facts list the
// launches that resumed the study and what each found different. Throws UsageError if the points of both
// launches would not be comparable.
Environment resumed(const std::string& path, const Environment& before, const Environment& now,
                    GoesOn goes_on) {
  const std::string changes = difference(before, now);
  if (!changes.empty() && goes_on == GoesOn::where_it_began)
    throw UsageError(path + " cannot be resumed, its points would not be comparable: " + changes +
                     "; restore that, or choose another output");
  nlohmann::ordered_json launch = {
      {"started", now.started}, {"nodes", now.nodes}, {"kernel", (*now.versions).value("kernel", "")}};
  if (!changes.empty()) launch["changed"] = changes;
  if ((*now.facts).contains(kBusyFact)) launch[kBusyFact] = (*now.facts).at(kBusyFact);
  if (before.suite_text != now.suite_text) launch["former_suite"] = before.suite_text;
  Environment latest = changes.empty() ? before : now;
  latest.started = before.started;
  latest.command_line = now.command_line;
  latest.suite_text = now.suite_text;
  latest.suite_path = now.suite_path;
  // The list of launches is carried over, and this launch is added to it.
  auto& launches = (*latest.facts)["resumed"];
  launches = (*before.facts).value("resumed", nlohmann::ordered_json::array());
  launches.push_back(std::move(launch));
  (*latest.facts).erase(kPlannedFact);
  for (const char* const of_latest : {kPlannedFact, kResumeFact})
    if ((*now.facts).contains(of_latest)) (*latest.facts)[of_latest] = (*now.facts).at(of_latest);
  // Tests of nodes are those of this start after those of the starts before.
  (*latest.facts).erase(kNodeTestsFact);
  for (const Environment* one : {&before, &now})
    for (const NodeTests& tests : node_tests_of(*one)) keep(tests, latest);
  return latest;
}

// Warns if the suite is another file, or the same file with another text.
void warn_of_other_suite(const std::string& path, const Environment& before, const Environment& now) {
  const auto file_name = [](const std::string& suite) { return suite.substr(suite.rfind('/') + 1); };
  const auto named = [](const std::string& suite) { return suite.empty() ? "flags alone" : suite; };
  if (file_name(before.suite_path) != file_name(now.suite_path))
    log_warning(fmt::format("{} holds points of {}; those of {} are added", path, named(before.suite_path),
                            named(now.suite_path)));
  else if (before.suite_text != now.suite_text)
    log_warning(fmt::format("{} was edited since {} began, and points of both texts are in it: {}",
                            now.suite_path, path, text_difference(before.suite_text, now.suite_text)));
}

}  // namespace

struct Study::State {
  std::string path;
  Journal journal;
  bool published = false;
};

namespace {

void refuse_existing(const std::string& path) {
  if (has_journal(path))
    throw UsageError(journal_path(path) +
                     " exists: an unfinished study; go on with --resume, or choose another output");
  if (file_exists(path)) throw UsageError(path + " exists; go on with --resume, or choose another output");
}

std::optional<std::set<std::string>> taken_plan(Environment& environment) {
  nlohmann::ordered_json& facts = *environment.facts;
  if (!facts.contains(kPlannedFact)) return std::nullopt;
  std::set<std::string> planned;
  for (const auto& id : facts.at(kPlannedFact))
    if (id.is_string()) planned.insert(id.get<std::string>());
  facts.erase(kPlannedFact);
  return planned;
}

std::string busy_line(const nlohmann::ordered_json& facts) {
  if (!facts.is_object() || !facts.contains(kBusyFact)) return "";
  const auto& line = facts.at(kBusyFact);
  return line.is_string() ? line.get<std::string>() : "";
}

// The number of planned points without a final record. A search is over when a record that is not one of its
// tries follows them, so the last search counts as unfinished.
std::optional<int64_t> num_to_go(std::optional<std::set<std::string>> planned,
                                 const std::vector<Record>& records, const JournalScan& scan) {
  if (!planned) return std::nullopt;
  std::set<std::string> over;
  std::string last_search;
  for (const Record& record : records) {
    const Known known{record.outcome, record.attempts, record.ended_job};
    const bool is_planned = planned->contains(record.id);
    last_search =
        is_planned || !is_known_workload(record.point) ? "" : search_of(record.point, *planned).value_or("");
    if (known.is_over() && !scan.due.contains(record.id)) over.insert(is_planned ? record.id : last_search);
  }
  over.erase(last_search);
  return std::count_if(planned->begin(), planned->end(),
                       [&](const std::string& id) { return !over.contains(id); });
}

void warn_of_damage(const std::string& path, int64_t num_damaged) {
  if (num_damaged > 0)
    log_warning(
        fmt::format("{}: {} damaged records are left out; their points can be run again", path, num_damaged));
}

}  // namespace

Study Study::create(const std::string& given, const Environment& environment) {
  const std::string path = follow_links(given);
  refuse_existing(path);
  Journal journal = Journal::claim(path);
  journal.start(environment, [](const RecordSink&) {});
  return Study(std::make_unique<State>(State{path, std::move(journal)}));
}

Study Study::resume(const std::string& given, const Environment& environment, const DueRule& is_due,
                    GoesOn goes_on) {
  const std::string path = follow_links(given);
  if (auto journal = Journal::open(path)) {
    const JournalScan& found = journal->found();
    const Environment latest = resumed(path, found.environment, environment, goes_on);
    if (found.torn)
      log_warning(journal_path(path) +
                  ": the record that was being written when the last run ended is dropped");
    warn_of_damage(journal_path(path), found.num_damaged);
    warn_of_other_suite(path, found.environment, environment);
    journal->mark_due(is_due);  // first, so that a crash between these two lines does not lose the marks
    journal->append(latest);
    return Study(std::make_unique<State>(State{path, std::move(*journal)}));
  }
  if (!file_exists(path)) {
    log_line(path + ": no study yet; starting a new one");
    return create(path, environment);
  }
  // The study is published. It becomes a journal again that holds all of its records. The published file
  // stays until the new one replaces it at the end, and the journal is what counts meanwhile.
  const Environment before = read_published_environment(path);
  const Environment latest = resumed(path, before, environment, goes_on);
  warn_of_other_suite(path, before, environment);
  Journal journal = Journal::claim(path);
  journal.start(
      latest, [&](const RecordSink& sink) { read_published(path, Load::everything, sink); }, is_due);
  return Study(std::make_unique<State>(State{path, std::move(journal)}));
}

Study::Study(std::unique_ptr<State> state) : state_(std::move(state)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

void Study::append(const Record& record) {
  ENSURE(!state_->published, "the study is published already");
  state_->journal.append(record);
}

// Reads the journal back and writes the latest record of each point. The journal is removed only after the
// file is complete, and only if every record could be read back.
void Study::publish(const std::vector<std::string>& to_go) {
  ENSURE(!state_->published, "the study is published already");
  const auto records = [&](const RecordSink& sink) {
    size_t num_read = 0;
    int64_t place = 0;
    // A point may have several records. known() has the place of its latest one among all records, and
    // `place` counts the records as they are read again. So exactly the latest records are written.
    auto scan = scan_journal(state_->path, Load::everything, [&](Record&& record) {
      if (known().at(record.id).place != place++) return;  // a later record replaces it
      ++num_read;
      sink(std::move(record));
    });
    const size_t num_written = known().size();
    if (!scan || num_read != num_written)
      throw UsageError(
          fmt::format("{}: {} of {} records can be read back; the journal is kept, nothing is published",
                      journal_path(state_->path), num_read, num_written));
    (*scan->environment.facts).erase(kPlannedFact);
    if (!to_go.empty()) (*scan->environment.facts)[kPlannedFact] = to_go;
    return std::move(scan->environment);
  };
  try {
    write_published(state_->path, records);
  } catch (const SystemError& error) {
    throw UsageError(std::string(error.what()) + "; what was recorded is kept in its journal: make room");
  }
  state_->journal.remove();
  state_->published = true;
}

void Study::extend(const std::string& id, const std::vector<Series>& columns, bool durable) {
  state_->journal.extend(id, columns, durable);
}

void Study::begin(const Record& record) { state_->journal.begin(record); }

const std::map<std::string, Known>& Study::known() const { return state_->journal.known(); }

int64_t Study::num_due() const {
  return std::count_if(known().begin(), known().end(),
                       [](const auto& point) { return point.second.attempts == 0; });
}

bool Study::is_busy(const std::string& given) {
  const std::string path = journal_path(follow_links(given));
  const File file = open_if_exists(path, O_RDWR);
  return file && lock_file(file, path) == Lock::held_by_another;
}

std::optional<Record> Study::record_crash(const std::string& given, Outcome outcome,
                                          const std::string& reason) {
  auto journal = Journal::open(follow_links(given));
  if (!journal || !journal->found().began) return {};
  Record record = *journal->found().began;
  record.outcome = outcome;
  record.reason = reason;
  record.ended_job = true;
  journal->append(record);
  return record;
}

void write_study(const std::string& given, const Environment& environment,
                 const std::vector<Record>& records) {
  const std::string path = follow_links(given);
  if (!reserve_study(path))
    throw UsageError(
        file_exists(path)
            ? path + " exists; choose another output"
            : fmt::format("{}: {} is there, so a job has reserved this name, or was killed before it "
                          "wrote; remove that file if none runs, or choose another output",
                          path, journal_path(path)));
  // An empty journal reserves the name while the file is written. It is removed at the end, whether or not
  // the file was written.
  struct Reservation {
    const std::string& path;
    ~Reservation() { release_study(path); }
  } const reservation{path};
  try {
    write_published(path, [&](const RecordSink& sink) {
      for (Record record : records) sink(std::move(record));
      return environment;
    });
  } catch (const SystemError& error) {
    throw SystemError(std::string(error.what()) + "; nothing was kept: make room, or choose another place");
  }
}

std::optional<std::string> search_of(Point point, const std::set<std::string>& planned) {
  point.training.batch_size = kLargest;
  for (const std::string& transport : {point.transport, std::string()}) {
    point.transport = transport;
    if (std::string id = point_id(point); planned.contains(id)) return id;
  }
  return std::nullopt;
}

std::vector<std::string> busy_launches(const Environment& environment) {
  const nlohmann::ordered_json& facts = *environment.facts;
  std::vector<std::string> lines = {busy_line(facts)};
  if (const auto resumed = facts.find("resumed"); resumed != facts.end() && resumed->is_array())
    for (const auto& launch : *resumed) lines.push_back(busy_line(launch));
  std::erase(lines, "");
  return lines;
}

StudyData read_study(const std::string& given, Load load) {
  std::string path = follow_links(given);
  if (path.ends_with(journal_path(""))) path.resize(path.size() - journal_path("").size());
  StudyData data{path, {}, {}};
  std::map<std::string, size_t> places;
  const RecordSink keep = [&](Record&& record) {
    const auto [place, is_new] = places.emplace(record.id, data.records.size());
    if (is_new)
      data.records.push_back(std::move(record));
    else
      data.records[place->second] = std::move(record);
  };
  if (auto scan = scan_journal(path, load, keep)) {
    warn_of_damage(journal_path(path), scan->num_damaged);
    data.environment = std::move(scan->environment);
    data.num_to_go = num_to_go(taken_plan(data.environment), data.records, *scan);
    if (scan->began && !scan->began->samples.empty()) data.under_way = std::move(scan->began);
    return data;
  }
  if (file_exists(path)) {
    data.environment = read_published(path, load, keep);
    if (const auto to_go = taken_plan(data.environment)) data.num_to_go = std::ssize(*to_go);
    return data;
  }
  if (has_journal(path))
    throw UsageError(samples_path(path) + ", which belongs to " + journal_path(path) +
                     ", is missing; put it back");
  throw UsageError(given + ": no such study");
}

}  // namespace shardmark
