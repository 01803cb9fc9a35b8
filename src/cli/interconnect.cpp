// shardmark interconnect: a model's training step over different links, by formula. Needs no study.
#include <cmath>
#include <memory>

#include "analysis/scaling/interconnects.h"
#include "cli/command.h"
#include "cli/parsed.h"
#include "cli/plot_output.h"
#include "cli/table_output.h"
#include "cli/values.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

struct InterconnectOptions {
  std::vector<std::string> models;
  std::vector<std::string> links;
  std::string precision = "fp32";
  double step_s = Measures::kNone;
  int64_t ranks = 8;
  TableOutput output;
  std::string plots;
};

double gradient_bytes(const std::string& model, const std::string& precision) {
  const Choice choice = choice_from_text(model);
  const specs::ModelSpec& spec = specs::model_spec(choice.name);
  const specs::ModelTable table = spec.table(resolve(choice, spec.options, "model").options);
  return static_cast<double>(table.num_parameters() * specs::element_bytes(precision, "same").reduce);
}

// Named models, or sizes from 10 million to 100 billion parameters.
std::vector<OneRankStep> workloads_of(const InterconnectOptions& options) {
  std::vector<OneRankStep> all;
  all.reserve(options.models.size());
  for (const std::string& model : options.models)
    all.push_back(
        {model, options.step_s, parsed("--model", [&] { return gradient_bytes(model, options.precision); })});
  if (!options.models.empty()) return all;
  const auto element = static_cast<double>(specs::element_bytes(options.precision, "same").reduce);
  for (const auto& [label, parameters] :
       {std::pair{"10 M parameters", 1e7}, {"100 M", 1e8}, {"1 B", 1e9}, {"10 B", 1e10}, {"100 B", 1e11}})
    all.push_back({label, options.step_s, parameters * element});
  return all;
}

int print_interconnects(const InterconnectOptions& options) {
  std::vector<specs::Link> links = specs::interconnect_links();
  for (const std::string& text : options.links) parsed("--link", [&] { specs::add_link(links, text); });
  const std::vector<OneRankStep> workloads = workloads_of(options);
  if (!options.plots.empty()) {
    write_plot_files(with_unique_keys(interconnect_plots(workloads, links, options.ranks)), options.plots,
                     options.output, "");
    return kDone;
  }
  std::vector<Table> tables = {all_reduce_table(workloads, links, options.ranks)};
  if (!std::isnan(options.step_s)) tables.push_back(interconnects_table(workloads, links));
  write_tables(std::move(tables), options.output);
  return kDone;
}

std::function<int()> define_interconnect(CLI::App& app) {
  auto options = std::make_shared<InterconnectOptions>();
  std::vector<std::string> precisions;
  for (const specs::PrecisionSpec& spec : specs::precision_specs()) precisions.push_back(spec.name);
  app.add_option("--model", options->models, "models, such as gpt2_xl; without: a range of sizes");
  add_value(app, "--precision", options->precision, Word{precisions}, "of the gradients");
  add_value(app, "--ranks", options->ranks, Whole{2, values::kRanks.most}, "ranks of the all-reduce");
  add_value(app, "--step", options->step_s, values::kStepTime,
            "time of a step on one rank, such as 120ms: adds Amdahl's curves");
  app.add_option("--link", options->links, "one more link: NAME=LATENCY,RATE such as mine=5us,25GB/s");
  add_table_flags(app, options->output);
  add_plots_flag(app, options->plots);
  return [options] { return print_interconnects(*options); };
}

const Registration<CommandEntry> interconnect_command{
    "interconnect",
    {"compare interconnects by formula: all-reduce overhead and Amdahl's curves", define_interconnect}};

}  // namespace
}  // namespace shardmark
