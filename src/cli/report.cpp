// shardmark report: the tables of one or several studies, for people or for programs.
#include "analysis/report.h"

#include <memory>

#include "cli/command.h"
#include "cli/table_output.h"

namespace shardmark {
namespace {

struct ReportOptions {
  std::vector<std::string> studies;
  TableOutput output;
};

int report(const ReportOptions& options) {
  write_tables(make_report(read_studies(options.studies)), options.output);
  return kDone;
}

std::function<int()> define(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  add_table_flags(app, options->output);
  return [options] { return report(*options); };
}

const Registration<CommandEntry> registered{"report", {"tables of one or several studies", define}};

}  // namespace
}  // namespace shardmark
