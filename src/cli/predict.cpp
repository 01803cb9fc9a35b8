// shardmark predict: how long steps would take on other numbers of ranks and networks, from the collectives
// and training points of a study. Without a study it compares links by formula.
// Needs no MPI, LibTorch or GPU.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "analysis/frame/known.h"
#include "analysis/predict/left_out.h"
#include "analysis/predict/predicted_layouts.h"
#include "analysis/predict/tables.h"
#include "analysis/stats/interconnects.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/failure_flags.h"
#include "cli/modes.h"
#include "cli/parsed.h"
#include "cli/plot_output.h"
#include "cli/rank_counts.h"
#include "cli/table_output.h"
#include "cli/values.h"
#include "plan/axis_values.h"
#include "plan/choice_axis.h"
#include "schema/file.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr Whole kReducing{2, values::kRanks.most};  // ranks of an all-reduce
// Options that say which points are predicted, and from what.
constexpr const char* kOfPoints[] = {
    "studies",     "--ranks",      "--network",      "--node-link", "--ranks-per-node",
    "--strategy",  "--batch-size", "--global-batch", "--overwrite", "--model",
    "--precision", "--step",       "--link"};

// Options for comparing links by formula, without a study.
struct LinksQuery {
  std::vector<std::string> models, links;
  std::string precision = "fp32";
  double step_s = Measures::kNone;
  int64_t ranks = 8;
};

struct PredictOptions {
  std::vector<std::string> studies;
  std::string ranks = "1..1024";
  std::string network, node_link;
  std::vector<std::string> strategies;
  bool layouts = false;
  PredictQuery query;
  LinksQuery links;
  TableOutput output;
  std::string plots, traces, suite;
};

PredictQuery query_of(const PredictOptions& options) {
  PredictQuery query = options.query;
  query.ranks = parsed("--ranks", [&] { return rank_counts(options.ranks); });
  if (!options.network.empty())
    query.network = parsed("--network", [&] { return specs::link_from_text(options.network); });
  if (!options.node_link.empty())
    query.node_link = parsed("--node-link", [&] { return specs::link_from_text(options.node_link); });
  for (const std::string& text : options.strategies)
    query.strategies.push_back(parsed("--strategy", [&] { return strategy_from_text(text); }));
  return query;
}

// Throws if nothing can be predicted. Layouts are computed by formula alone and need no prediction.
void require_predictions(const std::vector<PredictedPoint>& predicted, const PredictOptions& options) {
  const auto is_known = [](const PredictedPoint& one) { return one.prediction.unknown.empty(); };
  if (options.layouts || std::any_of(predicted.begin(), predicted.end(), is_known)) return;
  throw UsageError(fmt::format("nothing can be predicted: {}", fmt::join(why_unknown(predicted), "; ")));
}

// Throws if the studies lack what a prediction needs, so that the user learns what is missing.
void require_ingredients(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  const bool any_training = std::any_of(points.begin(), points.end(), is_training);
  if (!any_training)
    throw UsageError(
        "nothing to predict: no training point with outcome ok; run a suite that has some, such as "
        "suites/predict.yaml");
  if (std::all_of(predictors.begin(), predictors.end(),
                  [](const auto& one) { return one.num_measured() == 0; }))
    throw UsageError(fmt::format("nothing to predict from: {}", fmt::join(why_unused(points), "; ")));
}

void write_traces(const std::vector<PredictedPoint>& predicted, const PredictOptions& options) {
  require_writable_directory(options.traces, "--trace");
  const auto traces = predicted_traces(predicted);
  if (traces.empty()) throw UsageError("--trace: no step of these points can be shown; try fewer --ranks");
  for (const auto& [name, text] : traces) {
    const std::string path = options.traces + "/" + name + ".json";
    require_free(path, options.output.overwrite, options.studies);
    write_whole(path, "name another directory: --trace DIR", [&](std::ostream& out) { out << text; });
  }
  print(
      fmt::format("{} step{} written to {}\n", traces.size(), traces.size() == 1 ? "" : "s", options.traces));
  for (const std::string& line : why_unknown(predicted)) print("Left out: " + line + "\n");
}

// Writes the layouts that --layouts found as a suite for launch.
void write_shortlist(const std::vector<LayoutSearch>& searches, const PredictQuery& query,
                     const PredictOptions& options) {
  const std::string suite = shortlist_suite(searches, query);
  require_free(options.suite, options.output.overwrite, options.studies);
  write_whole(options.suite, "name another file: -o FILE", [&](std::ostream& out) { out << suite; });
  log_line(fmt::format("{} written; measure it: shardmark launch {} -n {}", options.suite,
                       shell_word(options.suite), searches.front().ranks));
}

// The models that the user named, or sizes from 10 million to 100 billion parameters.
std::vector<OneRankStep> workloads_of(const LinksQuery& query) {
  std::vector<OneRankStep> all;
  TrainingPoint point;
  point.precision = query.precision;
  for (const std::string& model : query.models) {
    point.model = choice_from_flag(model, "--model", model_kind());
    all.push_back({model, query.step_s, gradient_bytes(point)});
  }
  if (!query.models.empty()) return all;
  const auto element = static_cast<double>(specs::element_bytes(query.precision, "same").reduce);
  for (const auto& [label, parameters] :
       {std::pair{"10 M parameters", 1e7}, {"100 M", 1e8}, {"1 B", 1e9}, {"10 B", 1e10}, {"100 B", 1e11}})
    all.push_back({label, query.step_s, parameters * element});
  return all;
}

int compare_links(const PredictOptions& options) {
  const LinksQuery& query = options.links;
  std::vector<specs::Link> links = specs::interconnect_links();
  for (const std::string& text : query.links) parsed("--link", [&] { specs::add_link(links, text); });
  const std::vector<OneRankStep> workloads = workloads_of(query);
  if (!options.plots.empty()) {
    write_plot_files(with_unique_keys(interconnect_plots(workloads, links, query.ranks)), options.plots,
                     options.output, "");
    return kDone;
  }
  std::vector<Table> tables = {all_reduce_table(workloads, links, query.ranks)};
  if (!std::isnan(query.step_s)) tables.push_back(interconnects_table(workloads, links));
  write_tables(std::move(tables), options.output);
  return kDone;
}

int predict(PredictOptions options) {
  options.output.inputs = options.studies;
  if (!options.plots.empty() && !std::isnan(options.query.failures.watts))
    throw UsageError("--failures: watts changes tables alone, which --plots does not draw; leave it out");
  if (options.studies.empty())
    throw UsageError("predict: name a study (x.h5), or --model and --step for links by formula");
  // Read the studies, and make the predictors that their measured points allow.
  const PredictQuery query = query_of(options);
  if (query.global_batch > 0 && !query.batch_sizes.empty() && !options.layouts)
    throw UsageError(
        "--batch-size excludes --global-batch, which the ranks divide; only --layouts takes both: the "
        "samples "
        "of micro-batches, and all of a step");
  const std::vector<StudyData> studies = read_studies(options.studies);
  const std::vector<MergedPoint> points = one_for_each_step(merge_repeats(studies));
  const std::vector<Predictor> predictors = make_predictors(points);
  require_ingredients(points, predictors);
  // Predict every point on every number of ranks, and goodput if failures were given.
  const std::vector<PredictedPoint> predicted = predict_all(points, predictors, query);
  require_predictions(predicted, options);
  std::vector<GoodputRow> goodput;
  if (query.failures.is_asked())
    goodput = predicted_goodput(studies, points, best_points(predicted), query.failures);
  if (!options.plots.empty()) {
    // With --plots, only plots are written; with --trace, only traces.
    const PlotNames names(points);
    Plots plots = predicted_plots(predicted, names);
    const auto add = [&](Plots more) { std::move(more.begin(), more.end(), std::back_inserter(plots)); };
    if (query.failures.is_asked()) add(goodput_plots(goodput, query.failures, names));
    add(prediction_plots(points, names));
    write_plot_files(with_unique_keys(std::move(plots)), options.plots, options.output,
                     "these points have no throughput");
    return kDone;
  }
  if (!options.traces.empty()) {
    write_traces(predicted, options);
    return kDone;
  }
  std::vector<Table> tables = {best_table(points, predicted, query),
                               predictions_table(points, predicted, query),
                               goodput_table(points, goodput, query.failures, query.price_per_gpu_hour),
                               held_out_table(points, predictors)};
  if (options.layouts) {
    const std::vector<LayoutSearch> searches = search_layouts(predicted, predictors, query);
    for (Table& table : predicted_layouts_tables(searches, query)) tables.push_back(std::move(table));
    if (!options.suite.empty()) write_shortlist(searches, query, options);
  }
  // A table without rows stays if its notes say why it has none.
  std::erase_if(tables, [](const Table& table) { return table.rows.empty() && table.notes.empty(); });
  write_tables(std::move(tables), options.output, {"best", "goodput", "predicted_layouts"});
  return kDone;
}

std::vector<CLI::Option*> add_links_flags(CLI::App& app, LinksQuery& query) {
  return {
      offer(app.add_option("--model", query.models, "models, such as gpt2_xl; without: a range of sizes"),
            {.words = [] { return model_kind().names; }}),
      add_value(app, "--precision", query.precision, Word{words_of("precision")}, "of the gradients"),
      add_value(app, "--step", query.step_s, values::kStepTime,
                "time of a step on one rank, such as 120ms: adds Amdahl's curves"),
      offer(app.add_option("--link", query.links, "one more link: NAME=LATENCY,RATE such as mine=5us,25GB/s"),
            {})};
}

std::function<int()> define_predict(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  app.add_option("studies", options->studies, "studies (x.h5) with collectives and training points");
  auto* ranks = app.add_option("--ranks", options->ranks, "numbers of ranks: 8..65536 (doubling) or 8,16,24")
                    ->capture_default_str();
  offer(ranks, {});
  const Candidates links{.words = [] { return names_in(specs::interconnect_links()); }};
  offer(app.add_option(
            "--network", options->network,
            "link of each rank across nodes instead of the measured one: a name such as ndr400 (any other "
            "name lists all), or NAME=LATENCY,RATE such as mine=5us,25GB/s"),
        links);
  offer(app.add_option("--node-link", options->node_link, "the same within a node"), links);
  add_value(app, "--ranks-per-node", options->query.ranks_per_node, values::kRanksPerNode,
            "default: the most that was measured");
  offer(app.add_option(
            "--strategy", options->strategies,
            "strategies, such as 'fsdp(shard=gradients)'; default: the measured strategies plus ddp, "
            "fsdp and zero3"),
        {.words = [] { return strategy_kind().names; }});
  add_value(app, "--batch-size", options->query.batch_sizes, values::kBatch,
            "samples per rank and micro-batch; default: those measured");
  add_value(app, "--global-batch", options->query.global_batch, values::kGlobalBatch,
            "strong scaling: this batch divided over the ranks; counts that do not divide it are left out");
  add_value(app, "--memory", options->query.memory_bytes, values::kMemory,
            "memory of a rank, such as 80GiB: what needs more is not recommended");
  add_value(app, "--price", options->query.price_per_gpu_hour, values::kPrice,
            "price of a GPU-hour: adds costs");
  add_failure_flags(app, options->query.failures);
  auto* layouts =
      app.add_flag("--layouts", options->layouts,
                   "a shortlist to measure: the fastest ways to lay the most of these ranks out over tensor, "
                   "pipeline, expert and data parallelism");
  app.add_option("-o,--output", options->suite,
                 "of --layouts: write the shortlist as a suite, such as layouts.yaml, for launch")
      ->needs(layouts);
  const std::vector<CLI::Option*> of_links = add_links_flags(app, options->links);
  add_table_flags(app, options->output);
  auto* plots = add_plots_flag(app, options->plots);
  auto* trace = app.add_option("--trace", options->traces,
                               "instead of tables: a directory for the simulated steps, one file each, to "
                               "view in Perfetto beside those of run --trace");
  // --trace and --plots write files instead of tables, so they take only the options that say what is
  // predicted. Links by formula need no study, so their flags take no option about points.
  std::vector<std::string> of_points(std::begin(kOfPoints), std::end(kOfPoints));
  takes_only(app, trace, of_points);
  of_points.emplace_back("--failures");
  takes_only(app, plots, of_points);
  std::vector<std::string> of_tables = {"--overwrite"};
  of_tables.insert(of_tables.end(), std::begin(kTableFlags), std::end(kTableFlags));
  std::vector<std::string> by_formula = {"--ranks", "--plots", "--model", "--precision", "--step", "--link"};
  by_formula.insert(by_formula.end(), of_tables.begin(), of_tables.end());
  for (CLI::Option* flag : of_links) {
    flag->group("Links by formula, without a study; --ranks: of the all-reduce, 8");
    takes_only(app, flag, by_formula);
  }
  return [=] {
    if (std::all_of(of_links.begin(), of_links.end(), [](auto* flag) { return flag->empty(); }))
      return predict(*options);
    if (!ranks->empty())
      options->links.ranks = parsed("--ranks", [&] { return kReducing.parse(options->ranks); });
    return compare_links(*options);
  };
}

const Registration<CommandEntry> predict_command{
    "predict", {"more ranks, other networks, layouts, failures", define_predict}};

}  // namespace
}  // namespace shardmark
