// shardmark report: the tables of one or several studies, for people or for programs; their plots and their
// page.
#include "analysis/report.h"

#include <cmath>
#include <memory>

#include "analysis/page/page.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/parsed.h"
#include "cli/plot_output.h"
#include "cli/report_output.h"
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
  const std::string page = make_page(ReportData(studies), inputs);
  write_whole(path, "name a writable file: --html FILE", [&](std::ostream& out) { out << page; });
  print(path + "\n");
}

int report(ReportOptions options) {
  options.output.inputs = options.studies;
  const ReportInputs inputs = inputs_of(options);
  if (!options.plots.empty() && options.html.empty() && !std::isnan(inputs.price_per_gpu_hour))
    throw UsageError("--price makes a table of costs, which --plots does not draw; leave out one of them");
  const std::vector<StudyData> studies = read_studies(options.studies);
  if (!options.html.empty()) write_page(studies, inputs, options);
  if (!options.plots.empty())
    write_plot_files(make_plots(studies, inputs.links), options.plots, options.output,
                     "no point with outcome ok, and no training run");
  if (options.html.empty() && options.plots.empty()) write_report(studies, inputs, options.output);
  return kDone;
}

std::function<int()> define_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  add_value(app, "--price", options->inputs.price_per_gpu_hour, values::kPrice,
            "price of a GPU-hour: adds a table of costs");
  app.add_option("--link", options->links,
                 "one more link to compare: NAME=LATENCY,RATE such as mine=5us,25GB/s");
  add_table_flags(app, options->output);
  auto* html = app.add_option("--html", options->html, "write summary, plots and tables to FILE, one page");
  for (const char* flag : kTableFlags) html->excludes(app.get_option(flag));
  add_plots_flag(app, options->plots);
  return [options] { return report(*options); };
}

const Registration<CommandEntry> report_command{
    "report", {"summarize studies: an overview, tables, plots, or an HTML page", define_report}};

}  // namespace
}  // namespace shardmark
