// What was measured, and what is unreliable.
#include "analysis/overview/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/frame/layouts.h"
#include "analysis/frame/names.h"
#include "base/units.h"
#include "schema/imported.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr size_t kMostStudies = 4, kMostCauses = 8;

std::string plural(size_t count, const std::string& noun, const std::string& several = "") {
  return fmt::format("{} {}", format_count(static_cast<double>(count)),
                     count == 1        ? noun
                     : several.empty() ? noun + "s"
                                       : several);
}

// "54 points: 52 ok, 2 skipped"
std::string outcomes_text(const StudyData& study) {
  constexpr Outcome kOutcomes[] = {Outcome::ok,    Outcome::skipped, Outcome::out_of_memory,
                                   Outcome::wrong, Outcome::failed,  Outcome::timed_out};
  std::map<Outcome, size_t> counts;
  for (const Record& record : study.records) ++counts[record.outcome];
  std::string text;
  for (const Outcome outcome : kOutcomes)
    if (counts[outcome] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[outcome], to_text(outcome));
  std::replace(text.begin(), text.end(), '_', ' ');
  return plural(study.records.size(), "point") + (text.empty() ? "" : ": " + text);
}

// A study of before has its ranks' own command line alone: whoever started several of them is not known.
std::string resume_command(const Environment& e) {
  const auto& facts = *e.facts;
  if (facts.is_object() && facts.contains(kResumeFact) && facts.at(kResumeFact).is_string())
    return facts.at(kResumeFact).get<std::string>();
  std::string command = e.command_line;
  if (e.world_ranks > 1) command = fmt::format("mpirun -n {} {}", e.world_ranks, command);
  return command + (command.find(" --resume") == std::string::npos ? " --resume" : "");
}

std::string about(const StudyData& study) {
  const Environment& e = study.environment;
  std::string text =
      fmt::format("{}: {}, on {}{} ({}){}.", study.path, outcomes_text(study), ranks_text(e.world_ranks),
                  e.nodes.empty() ? "" : " of " + plural(e.nodes.size(), "node"), machine_text(e),
                  e.transport.empty() ? "" : " over " + brief_text("transport", e.transport));
  if (is_imported(e)) return text + fmt::format(" It was {}.", imported_text(e));
  const std::string suite = std::filesystem::path(e.suite_path).stem().string();
  text += fmt::format(" {}started {}, revision {}.", suite.empty() ? "" : "Suite " + suite + ", ", e.started,
                      e.revision);
  if (!study.num_to_go) return text;
  return text + fmt::format(" Unfinished: {} to go; unless a job still measures them, resume on {} with: {}",
                            plural(static_cast<size_t>(*study.num_to_go), "point"), ranks_text(e.world_ranks),
                            resume_command(e));
}

// Findings of one kind are one line, with the first of them as an example.
void add_findings(std::vector<std::string>& cautions, const std::vector<MergedPoint>& points,
                  const std::vector<MergedPoint>& unfinished) {
  const std::vector<PointFinding> findings = findings_of(points, unfinished);
  std::vector<std::pair<std::string, std::vector<const PointFinding*>>> kinds;
  for (const PointFinding& finding : findings) {
    if (!finding.is_warning || finding.kind == kLostCores) continue;  // doubts_of has said that
    auto found =
        std::find_if(kinds.begin(), kinds.end(), [&](auto& kind) { return kind.first == finding.kind; });
    if (found == kinds.end()) found = kinds.insert(kinds.end(), {finding.kind, {}});
    found->second.push_back(&finding);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](auto& a, auto& b) { return a.second.size() > b.second.size(); });
  for (size_t i = 0; i < std::min(kinds.size(), kMostCauses); ++i) {
    const auto& [kind, all] = kinds[i];
    cautions.push_back(fmt::format("{}: {}{}{}: {}.", kind, plural(all.size(), "point"),
                                   all.size() == 1 ? ", " : ", such as ",
                                   brief_text(all.front()->about->point), all.front()->words));
  }
  if (kinds.size() > kMostCauses)
    cautions.push_back(plural(kinds.size() - kMostCauses, "further cause") + ": --table problems.");
}

// Points that failed, with the reason of the first.
void add_failures(std::vector<std::string>& cautions, const std::vector<StudyData>& studies) {
  for (const Outcome outcome : {Outcome::wrong, Outcome::failed, Outcome::timed_out}) {
    const Record* first = nullptr;
    size_t count = 0;
    for (const StudyData& study : studies)
      for (const Record& record : study.records) {
        if (record.outcome != outcome) continue;
        if (count++ == 0) first = &record;
      }
    if (count == 0) continue;
    std::string word(to_text(outcome));
    std::replace(word.begin(), word.end(), '_', ' ');
    cautions.push_back(fmt::format("{}: {}{}{}: {}.", word, plural(count, "point"),
                                   count == 1 ? ", " : ", such as ", brief_text(first->point),
                                   first->reason));
  }
}

void add_verification(std::vector<std::string>& cautions, const std::vector<MergedPoint>& points) {
  size_t num_training = 0, num_equal = 0, num_wrong = 0;
  for (const MergedPoint& merged : points) {
    num_training += is_training(merged) ? 1 : 0;
    num_equal += is_training(merged) && merged.measures.verified.starts_with("equal") ? 1 : 0;
    num_wrong += merged.measures.num_wrong > 0 ? 1 : 0;
  }
  if (num_equal == 0 && num_training > 0)
    cautions.push_back(
        fmt::format("not verified: no training point ({}) was compared with one device.", num_training));
  else if (num_equal < num_training)
    cautions.push_back(
        fmt::format("not verified: {} of {}; the others gave the losses and gradient norms of one device.",
                    num_training - num_equal, plural(num_training, "training point")));
  if (num_wrong > 0)
    cautions.push_back(fmt::format("wrong elements: {} returned elements that differ from the expected ones.",
                                   plural(num_wrong, "collective")));
}

// `auto` may choose another strategy for each batch.
std::string search_key(MergedPoint merged) {
  merged.point.training.chosen.clear();
  return series_key(merged, {"batch_size"});
}

// Series over the batch in which some ran out of memory and so many were tried that the largest was looked
// for: the table of the largest has its answer.
std::set<std::string> searches_of(const std::vector<StudyData>& studies) {
  constexpr size_t kMeansSearch = 5;
  struct Tried {
    std::set<int64_t> batches;
    bool any_too_large = false;
  };
  std::map<std::string, Tried> series;
  for (const StudyData& study : studies)
    for (const Record& record : study.records) {
      if (record.point.workload != "training") continue;
      const bool is_too_large = record.outcome == Outcome::out_of_memory;
      if (!is_too_large && record.outcome != Outcome::ok) continue;
      Tried& tried = series[search_key(as_merged(record, study.environment))];
      tried.batches.insert(record.point.training.batch_size);
      tried.any_too_large = tried.any_too_large || is_too_large;
    }
  std::set<std::string> searches;
  for (const auto& [key, tried] : series)
    if (tried.any_too_large && tried.batches.size() >= kMeansSearch) searches.insert(key);
  return searches;
}

// Points that are no rows of the answers before.
std::vector<MergedPoint> not_answered(const std::vector<StudyData>& studies,
                                      const std::vector<MergedPoint>& points,
                                      const std::vector<SettingsGroup>& settings) {
  std::set<const MergedPoint*> answered;
  for (const SettingsGroup& group : settings)
    for (const RankedSetting& row : group) answered.insert(row.merged);
  for (const Layouts& layouts : layouts_of(points)) answered.insert(layouts.begin(), layouts.end());
  const std::set<std::string> searches = searches_of(studies);
  for (const MergedPoint& merged : points)
    if (is_training(merged) && searches.contains(search_key(merged))) answered.insert(&merged);
  std::vector<MergedPoint> others;
  for (const MergedPoint& merged : points)
    if (!answered.contains(&merged)) others.push_back(merged);
  return one_for_each_step(std::move(others));
}

}  // namespace

std::vector<std::string> doubts_of(const std::vector<StudyData>& studies,
                                   const std::vector<MergedPoint>& points) {
  std::vector<std::string> doubts;
  std::vector<std::string> lines;
  for (const StudyData& study : studies)
    for (const std::string& line : busy_launches(study.environment))
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  if (!lines.empty())
    doubts.push_back(fmt::format(
        "Busy machine: before ranks computed, {}.{}", lines.front(),
        lines.size() == 1 ? ""
                          : fmt::format(" {} found it busy, too.",
                                        plural(lines.size() - 1, "other launch", "other launches"))));
  size_t count = 0;
  const MergedPoint* worst = nullptr;
  for (const MergedPoint& merged : points) {
    if (std::none_of(merged.warnings.begin(), merged.warnings.end(),
                     [](const Warning& warning) { return warning.kind == kLostCores; }))
      continue;
    ++count;
    const auto rate = [](const MergedPoint& one) { return one.measures.preemptions_per_s; };
    if (worst == nullptr || rate(merged) > rate(*worst)) worst = &merged;
  }
  if (worst != nullptr)
    doubts.push_back(fmt::format(
        "Lost cores: in {} of {}, other processes took the core of a computing thread, up to {:.0f} times a "
        "second: these times are too long by an unknown factor.",
        count, plural(points.size(), "point"), worst->measures.preemptions_per_s));
  return doubts;
}

std::vector<std::string> cautions_of(const std::vector<StudyData>& studies,
                                     const std::vector<MergedPoint>& points,
                                     const std::vector<MergedPoint>& unfinished) {
  std::vector<std::string> cautions;
  add_failures(cautions, studies);
  add_verification(cautions, points);
  const auto oversubscribed =
      static_cast<size_t>(std::count_if(points.begin(), points.end(), [](auto& merged) {
        return std::any_of(merged.warnings.begin(), merged.warnings.end(),
                           [](const Warning& warning) { return warning.kind == "oversubscribed"; });
      }));
  if (oversubscribed > 0)
    cautions.push_back(
        fmt::format("oversubscribed: {} had more ranks than cores, or several ranks on one GPU.",
                    plural(oversubscribed, "point")));
  add_findings(cautions, points, unfinished);
  return cautions;
}

std::vector<size_t> columns_with_values(const OverviewTable& table) {
  std::vector<size_t> columns = {0};
  for (size_t c = 1; c < table.columns.size(); ++c) {
    const auto has_value = [c](const auto& row) { return !row[c].says_nothing(); };
    if (std::any_of(table.groups.begin(), table.groups.end(), [&](const OverviewGroup& group) {
          return std::any_of(group.rows.begin(), group.rows.end(), has_value);
        }))
      columns.push_back(c);
  }
  return columns;
}

std::string name_rows(OverviewGroup& group, const std::vector<LabelParts>& rows) {
  Labels labels = labels_of(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    Cell& name = group.rows[i].front();
    name.text = labels.names[i];
    if (name.value.is_nothing()) name.value = name.text;
  }
  return labels.shared;
}

void name_groups(OverviewTable& table, const std::vector<LabelParts>& groups) {
  Labels labels = labels_of(groups);
  for (size_t i = 0; i < groups.size(); ++i) table.groups[i].setting = std::move(labels.names[i]);
  table.shared = std::move(labels.shared);
}

Overview overview_of(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                     const std::vector<MergedPoint>& unfinished, const std::vector<ScalingSeries>& scaling) {
  Overview overview;
  for (size_t i = 0; i < std::min(studies.size(), kMostStudies); ++i)
    overview.studies.push_back(about(studies[i]));
  if (studies.size() > kMostStudies)
    overview.studies.push_back("And " + plural(studies.size() - kMostStudies, "further study") +
                               ": --table studies.");
  for (std::string& doubt : doubts_of(studies, points)) overview.studies.push_back(std::move(doubt));
  const std::vector<SettingsGroup> settings = ranked_settings(points);
  overview.answers = {settings_overview(settings),  together_overview(points),
                      layouts_overview(points),     largest_overview(studies, points),
                      checkpoints_overview(points), sustained_overview(points, unfinished)};
  // Series of a filtered list point into that list, so they are made anew.
  const std::vector<MergedPoint> others = not_answered(studies, points, settings);
  // The series point into the points.
  const OverviewTable scale = others.size() < points.size()
                                  ? scaling_overview(others, unfitted_series(others))
                                  : scaling_overview(points, scaling);
  const bool is_question = answers_scaling(scaling);
  if (is_question) overview.answers.push_back(scale);
  overview.answers.push_back(training_overview(others));
  if (!is_question) overview.answers.push_back(scale);
  overview.answers.push_back(collectives_overview(studies, others));
  std::erase_if(overview.answers, [](const OverviewTable& table) { return table.groups.empty(); });
  overview.cautions = cautions_of(studies, points, unfinished);
  return overview;
}

}  // namespace shardmark
