// shardmark compare: whether points became slower, between two sets of launches or against a baseline file.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

#include "analysis/compare/tables.h"
#include "analysis/reference/matched.h"
#include "analysis/stats/baseline.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/junit_output.h"
#include "cli/shared_folder.h"
#include "cli/table_output.h"
#include "cli/values.h"
#include "schema/file.h"

namespace shardmark {
namespace {

struct CompareOptions {
  // Studies given without a flag: the old and the new one if no flag names a side.
  std::vector<std::string> studies;
  std::vector<std::string> before;
  std::vector<std::string> after;
  bool reference = false;
  std::string baseline;
  std::string write_baseline;
  std::string junit;
  double margin_percent = 100 * kDefaultMargin;
  TableOutput output;
};

std::string text_of(const std::string& path) {
  if (auto text = read_input(path, kMostBaselineBytes)) return std::move(*text);
  throw UsageError(path + ": no such baseline; write one with shardmark compare --write-baseline");
}

std::string points_text(size_t count) { return fmt::format("{} point{}", count, count == 1 ? "" : "s"); }

// Writes the points of these studies into a baseline file. If the file exists, everything else in it stays:
// other machines, and points of this machine that these studies do not have.
int write_baseline(const CompareOptions& options) {
  const std::string& path = options.write_baseline;
  require_free(path, /*overwrite=*/true, options.studies);  // a baseline may be extended by further machines
  const Launches launches = launches_of(read_studies(options.studies, Load::without_samples));
  const std::string existing = file_exists(path) ? text_of(path) : "";
  const Baseline baseline = to_baseline(launches, existing, path);
  if (baseline.num_written == 0)
    throw UsageError("no point of these studies has a step time, so nothing is written to " + path +
                     "; see shardmark report");
  write_whole(path, "name a writable file: --write-baseline FILE",
              [&](std::ostream& out) { out << baseline.text; });
  const size_t num_launches = launches.started.size();
  log_line(fmt::format(
      "{}: {} of {} launch{} of {}{}{}", path, points_text(baseline.num_written), num_launches,
      num_launches == 1 ? "" : "es", launches.machine,
      baseline.num_kept > 0 ? fmt::format("; {} more as before", points_text(baseline.num_kept)) : "",
      num_launches < kLeastLaunches ? "; 3 or more launches show the variation between launches" : ""));
  return kDone;
}

// Assigns the studies to the two sides. Studies without a flag are the new ones if a flag gives the old
// ones. Two studies without any such flag are the old and the new one. Everything else is ambiguous and is
// refused. A file may not be on both sides, under whatever names.
void resolve_sides(CompareOptions& options) {
  const bool one_side_given = !options.before.empty() || !options.baseline.empty() || options.reference;
  if (options.after.empty() && one_side_given) options.after.swap(options.studies);
  if (!one_side_given && options.after.empty() && options.studies.size() == 2) {
    options.before = {options.studies[0]};
    options.after = {options.studies[1]};
    options.studies.clear();
  }
  const bool has_old = !options.before.empty() || !options.baseline.empty() || options.reference;
  if (!options.studies.empty() || options.after.empty() || !has_old)
    throw UsageError(
        "which studies are old, which new? accepted: compare OLD.h5 NEW.h5; compare --old OLD.h5 ... --new "
        "NEW.h5 ...; compare --baseline FILE NEW.h5 ...; compare --reference NEW.h5 ...");
  std::set<std::filesystem::path> old;
  for (const std::string& path : options.before) old.insert(same_file(path));
  for (const std::string& path : options.after)
    if (old.contains(same_file(path))) throw UsageError(path + " is given both as old and as new");
}

// The tables of the first screen: all, but without the single points if those would fill more than a screen.
std::vector<std::string> first_tables(const std::vector<Table>& tables) {
  constexpr size_t kMostRows = 25;
  const auto is_every_point = [](const Table& table) { return table.key.starts_with("compared_"); };
  size_t num_rows = 0;
  for (const Table& table : tables) num_rows += is_every_point(table) ? table.rows.size() : 0;
  std::vector<std::string> keys;
  for (const Table& table : tables)
    if (num_rows <= kMostRows || !is_every_point(table)) keys.push_back(table.key);
  return keys;
}

// The old launches come from a baseline file, from studies, or from the reference collection. Those of the
// collection are of other hosts, so they need not be of one machine.
Launches launches_before(const CompareOptions& options, const std::vector<StudyData>& after,
                         const std::string& machine) {
  if (!options.baseline.empty()) return read_baseline(text_of(options.baseline), machine, options.baseline);
  if (!options.reference) return launches_of(read_studies(options.before, Load::without_samples));
  const References references = references_for(after, reference_files());
  if (references.studies.empty())
    throw UsageError(
        fmt::format("the reference collection has none of these points on {}; see shardmark "
                    "list reference, and shardmark report x.h5 --share",
                    machine));
  return launches_of(references.studies, OneMachine::not_needed);
}

int compare(CompareOptions options) {
  if (!options.write_baseline.empty()) return write_baseline(options);
  resolve_sides(options);
  options.output.inputs = options.before;
  options.output.inputs.insert(options.output.inputs.end(), options.after.begin(), options.after.end());
  if (!options.baseline.empty()) options.output.inputs.push_back(options.baseline);
  check_junit(options.junit, options.output.overwrite, options.output.inputs);
  const std::vector<StudyData> studies = read_studies(options.after, Load::without_samples);
  const Launches after = launches_of(studies);
  const Launches before = launches_before(options, studies, after.machine);
  ComparisonReport report = compare_sides(before, after, studies, options.margin_percent / 100);
  if (options.reference)
    report.tables.front().notes.emplace_back(
        "The launches before are those of the reference collection, on other hosts with equal devices: what "
        "hosts differ in looks like a change, and launches of one host do not show how much hosts vary.");
  write_junit(options.junit, report.tests);
  const std::vector<std::string> first = first_tables(report.tables);
  write_tables(std::move(report.tables), options.output, first);
  // A point that is slower, or that has no time any more, outweighs points about which nothing can be said.
  if (report.num_slower + report.num_lost > 0) return kWrong;
  return report.num_ambiguous > 0 ? kUndecided : kDone;
}

std::function<int()> define_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  auto* studies =
      app.add_option("studies", options->studies, "OLD.h5 NEW.h5; with --old or --baseline: the new launches")
          ->required(false);
  auto* old = app.add_option("--old", options->before, "studies of the old launches, 3 or more");
  auto* now = app.add_option("--new", options->after, "studies of the new launches, 3 or more");
  auto* baseline =
      app.add_option("--baseline", options->baseline, "old launches from a baseline file")->excludes(old);
  auto* reference = app.add_flag("--reference", options->reference,
                                 "old launches from the reference collection: the same device, other hosts")
                        ->excludes(old)
                        ->excludes(baseline);
  app.add_option("--write-baseline", options->write_baseline,
                 "write the studies, as launches of their machine, into a baseline file to commit")
      ->needs(studies)
      ->excludes(reference)
      ->excludes(old)
      ->excludes(now)
      ->excludes(baseline);
  add_junit_flag(app, options->junit)->excludes("--write-baseline");
  add_value(app, "--margin", options->margin_percent, values::kPercent,
            "differences below this do not matter, in percent")
      ->capture_default_str();
  add_table_flags(app, options->output);
  app.footer(
      "Exit status: 0 nothing is slower; 1 a point is SLOWER or no longer has a time; 4 no point is, but "
      "some are AMBIGUOUS.");
  return [options] { return compare(*options); };
}

const Registration<CommandEntry> compare_command{
    "compare", {"did anything become slower? old launches against new ones", define_compare}};

}  // namespace
}  // namespace shardmark
