// shardmark report: prints the tables of one or several studies as text or in other formats, and writes their
// plots, HTML page and metrics, or all that one study holds.
#include "analysis/report.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "analysis/openmetrics.h"
#include "analysis/page/page.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/failure_flags.h"
#include "cli/modes.h"
#include "cli/parsed.h"
#include "cli/plot_output.h"
#include "cli/raw_output.h"
#include "cli/report_output.h"
#include "cli/share.h"
#include "cli/shared_folder.h"
#include "cli/values.h"
#include "schema/file.h"

namespace shardmark {
namespace {

struct ReportOptions {
  std::vector<std::string> studies;
  std::vector<std::string> links;
  ReportInputs inputs;
  TableOutput output;
  std::string plots;
  std::string html;
  std::string openmetrics;
  bool raw = false;
  std::string share;  // a folder
};

ReportInputs inputs_of(const ReportOptions& options) {
  ReportInputs inputs = options.inputs;
  for (const std::string& text : options.links)
    parsed("--link", [&] { specs::add_link(inputs.links, text); });
  return inputs;
}

void write_page(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                const ReportOptions& options) {
  const std::string& path = options.html;
  require_free(path, options.output.overwrite, options.studies);
  const std::string page = make_page(ReportData(studies, inputs.references), inputs);
  write_whole(path, "name a writable file: --html FILE", [&](std::ostream& out) { out << page; });
  print(path + "\n");
}

void write_metrics(const std::vector<StudyData>& studies, const ReportOptions& options) {
  const std::string& path = options.openmetrics;
  require_free(path, options.output.overwrite, options.studies);
  const std::string text = point_metrics(studies) + kEndOfMetrics;
  write_whole(path, "name a writable file: --openmetrics FILE", [&](std::ostream& out) { out << text; });
}

int report(ReportOptions options) {
  options.output.inputs = options.studies;
  if (options.raw || !options.share.empty()) {
    const char* const flag = options.raw ? "--raw" : "--share";
    if (options.studies.size() > 1)
      throw UsageError(fmt::format("{} takes one study, got {}", flag, options.studies.size()));
    if (!options.raw) return share_study(options.studies.front(), options.share, options.output.overwrite);
    write_raw(options.studies.front(), options.output);
    return kDone;
  }
  // Files replace the tables on the standard output. A flag that changes tables is refused if no file that
  // is written has them: the page does, plots and metrics do not.
  ReportInputs inputs = inputs_of(options);
  const bool has_price = !std::isnan(inputs.price_per_gpu_hour), has_failures = inputs.failures.is_asked(),
             has_tables = has_price || has_failures;
  if (!options.plots.empty() && options.html.empty() && has_tables)
    throw UsageError(
        "--price and --failures make tables, which --plots does not draw; leave out one of them");
  const bool only_metrics = !options.openmetrics.empty() && options.html.empty() && options.plots.empty();
  if (only_metrics && (has_tables || !options.links.empty()))
    throw UsageError(
        "--price, --failures and --link change tables, which --openmetrics does not write; leave them out");
  const std::vector<StudyData> studies = read_studies(options.studies);
  inputs.references = references_for(studies, reference_files());
  if (!options.openmetrics.empty()) write_metrics(studies, options);
  if (!options.html.empty()) write_page(studies, inputs, options);
  if (!options.plots.empty())
    write_plot_files(make_plots(studies, inputs.links), options.plots, options.output,
                     "no point with outcome ok, and no training run");
  if (options.html.empty() && options.plots.empty() && options.openmetrics.empty())
    write_report(studies, inputs, options.output);
  return kDone;
}

std::function<int()> define_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  add_value(app, "--price", options->inputs.price_per_gpu_hour, values::kPrice,
            "price of a GPU-hour: adds costs to the strategies");
  add_failure_flags(app, options->inputs.failures);
  offer(app.add_option("--link", options->links,
                       "one more link to compare: NAME=LATENCY,RATE such as mine=5us,25GB/s"),
        {});
  add_table_flags(app, options->output);
  offer(app.get_option("--table"), {.words = report_table_names});
  auto* html = app.add_option("--html", options->html, "write summary, plots and tables to FILE, one page");
  auto* metrics = app.add_option("--openmetrics", options->openmetrics,
                                 "write the points to FILE for Prometheus, such as by the node exporter's "
                                 "textfile collector");
  for (const char* flag : kTableFlags) {
    html->excludes(app.get_option(flag));
    metrics->excludes(app.get_option(flag));
  }
  add_plots_flag(app, options->plots);
  auto* raw =
      app.add_flag("--raw", options->raw,
                   "with --csv DIR or --json: instead of tables all points with their raw samples, the "
                   "environment, and what each column means");
  auto* share = app.add_option("--share", options->share,
                               "check a study, and write it into the folder DIR for the reference collection "
                               "(results/reference), without names of hosts and people");
  takes_only(app, raw, {"studies", "--csv", "--json", "--overwrite"});
  takes_only(app, share, {"studies", "--overwrite"});
  return [options] { return report(*options); };
}

const Registration<CommandEntry> report_command{
    "report", {"what studies say: a first screen, tables, plots, a page", define_report}};

}  // namespace
}  // namespace shardmark
