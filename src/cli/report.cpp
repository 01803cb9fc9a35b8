// shardmark report: the tables of one or several studies, for people or for programs.
#include "analysis/report.h"

#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/table_output.h"

namespace shardmark {
namespace {

struct ReportOptions {
  std::vector<std::string> studies;
  std::vector<std::string> links;
  ReportInputs inputs;
  TableOutput output;
};

// Empty where the text is a price.
std::string refuse_price(const std::string& text) {
  double price = 0;
  const bool whole = CLI::detail::lexical_cast(text, price);
  return whole && std::isfinite(price) && price > 0 ? "" : "'" + text + "' is no price of a GPU-hour above 0";
}

ReportInputs inputs_of(const ReportOptions& options) {
  ReportInputs inputs = options.inputs;
  for (const std::string& text : options.links) inputs.links.push_back(laws::link_from_text(text));
  return inputs;
}

int report(const ReportOptions& options) {
  const ReportInputs inputs = inputs_of(options);
  write_tables(make_report(read_studies(options.studies), inputs), options.output);
  return kDone;
}

std::function<int()> define(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  app.add_option("--price", options->inputs.price_per_gpu_hour, "price of a GPU-hour: adds a table of costs")
      ->check(&refuse_price);
  app.add_option("--link", options->links,
                 "one more link to compare: NAME=LATENCY,RATE such as mine=5us,25GB/s");
  add_table_flags(app, options->output);
  return [options] { return report(*options); };
}

const Registration<CommandEntry> registered{"report", {"tables of one or several studies", define}};

}  // namespace
}  // namespace shardmark
