// shardmark report: the tables of one or several studies, for people or for programs; their plots and their
// page.
#include "analysis/report.h"

#include <fstream>
#include <memory>

#include "analysis/page/page.h"
#include "analysis/plots/gnuplot.h"
#include "analysis/plots/plots.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/table_output.h"

namespace shardmark {
namespace {

struct ReportOptions {
  std::vector<std::string> studies;
  TableOutput output;
  std::string plots;
  std::string html;
};

void write_all_plots(const std::vector<StudyData>& studies, const std::string& directory) {
  const Plots plots = make_plots(studies);
  if (plots.empty())
    throw UsageError("--plots: nothing to plot: no point with outcome ok, and no training run");
  for (const std::filesystem::path& path : write_plots(plots, directory)) print(path.string() + "\n");
}

void write_page(const std::vector<StudyData>& studies, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << make_page(studies, make_report(studies));
  file.close();
  if (!file) throw UsageError(path + ": cannot be written; name a file that can: --html FILE");
  print(path + "\n");
}

int report(const ReportOptions& options) {
  const std::vector<StudyData> studies = read_studies(options.studies);
  if (!options.html.empty()) write_page(studies, options.html);
  if (!options.plots.empty()) write_all_plots(studies, options.plots);
  if (options.html.empty() && options.plots.empty()) write_tables(make_report(studies), options.output);
  return kDone;
}

std::function<int()> define(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  add_table_flags(app, options->output);
  auto* html = app.add_option("--html", options->html, "write summary, plots and tables to FILE, one page");
  auto* plots =
      app.add_option("--plots", options->plots, "draw each plot with gnuplot: DIR/<key>.svg, .png, .pdf");
  for (const char* tables : {"--csv", "--json", "--markdown", "--table"})
    for (auto* option : {html, plots}) option->excludes(app.get_option(tables));
  return [options] { return report(*options); };
}

const Registration<CommandEntry> registered{"report", {"tables of one or several studies", define}};

}  // namespace
}  // namespace shardmark
