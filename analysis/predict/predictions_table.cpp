// Predicted steps, and the best of them.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "analysis/frame/known.h"
#include "analysis/frame/layouts.h"
#include "analysis/frame/names.h"
#include "analysis/frame/training_columns.h"
#include "analysis/predict/left_out.h"
#include "analysis/predict/predicted_layouts.h"
#include "analysis/predict/shortlist.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "base/error.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// An efficiency above 100 % is marked if the outer ends of both steps' intervals allow 100 %: the step on
// one rank may have been too slow by chance.
Cell efficiency_cell(const PredictedPoint& one, const PredictQuery& query) {
  const double ranks = query.global_batch > 0 ? static_cast<double>(one.prediction.point.ranks) : 1;
  const Estimate efficiency = quotient(one.one_rank_s, scaled(one.prediction.step_s, ranks));
  Cell cell = cells::percent(efficiency.value);
  if (efficiency.value > 1 && !(efficiency.low > 1)) cell.text += " ?";
  return cell;
}

double cost_of_million(const PredictedPoint& one, const PredictQuery& query) {
  const Throughput speed = throughput_of(one);
  return query.price_per_gpu_hour * speed.rank_hours(1e6, speed.samples_per_s);
}

ColumnsOf<PredictedPoint> prediction_setting_columns() {
  return {{{"batch", "per rank"},
           [](const auto& one) { return cells::count(one.prediction.point.training.batch_size); }},
          {choice_column("strategy"),
           [](const auto& one) { return strategy_cell(one.prediction.point.training); }}};
}

ColumnsOf<PredictedPoint> where_columns() {
  return {{{"ranks", ""}, [](const auto& one) { return cells::count(one.prediction.point.ranks); }},
          {{"nodes", "", true, true}, [](const auto& one) { return cells::count(one.nodes()); }}};
}

auto step_of(double Estimate::*part) {
  return [part](const PredictedPoint& one) { return cells::milliseconds(one.prediction.step_s.*part); };
}

constexpr const char* kInterval =
    "2.5th and 97.5th percentile over 40 draws of latency and bandwidth, each divided by 1 + e for the error "
    "e of every held-out point. Beyond what was measured (other networks, many more ranks) they do not cover "
    "what no small run shows: congestion, stragglers, failures; of the first two they have the growth with "
    "nodes, and its interval, where a note names it.";

ColumnsOf<PredictedPoint> result_columns(const PredictQuery& query) {
  return {{{"step", "ms"}, step_of(&Estimate::value)},
          {{"low", "ms", true, true}, step_of(&Estimate::low), kInterval},
          {{"high", "ms", true, true}, step_of(&Estimate::high), kInterval},
          {{"efficiency", "%"},
           [&](const auto& one) { return efficiency_cell(one, query); },
           std::string(query.global_batch > 0
                           ? "predicted step on one rank with the whole global batch / (ranks x step)."
                           : "predicted step of the strategy on one rank / step, the same batch per rank.") +
               " ?: above 100 %, but by the intervals of both steps it may be 100 %."},
          {{"exposed", "% of step"}, [](const auto& one) {
             const SimulatedStep& parts = one.prediction.parts;
             return cells::percent(parts.exposed_s / parts.step_s);
           }}};
}

// As in every table, but for the heading and what the step is; efficiency stands for the shares of a device.
ColumnsOf<PredictedPoint> speed_columns() {
  auto columns = through<PredictedPoint>([](const PredictedPoint& one) { return throughput_of(one); },
                                         without(throughput_columns(), {"MFU", "of matmul"}));
  for (auto& column : columns) column.definition.clear();
  Column& samples = columns.front().head;
  samples.name = "throughput", samples.unit = "samples/s";
  return columns;
}

ColumnsOf<PredictedPoint> need_columns(const PredictQuery& query) {
  return {
      {{"memory", "MiB per rank", true, true},
       [](const auto& one) { return cells::mebibytes(one.prediction.memory_bytes); },
       "by the strategy's program + batch x (peak - parameters - gradients - optimizer - transient) / batch, "
       "median over the family's points; of layouts, with activations by the model's table, on the stage "
       "that needs most."},
      {{"fits", "", false, true},
       [any_limit = !std::isnan(query.memory_bytes)](const auto& one) {
         return any_limit ? cells::yes_no(one.fits) : cells::words("");
       }},
      {{"cost of 10^6", "samples", true, true},
       [&](const auto& one) { return cells::number(cost_of_million(one, query)); }}};
}

void add_left_out(Table& table, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) table.notes.push_back("Left out: " + line + ".");
}

void add_not_used(Table& table, const std::vector<MergedPoint>& points) {
  for (const std::string& line : why_unused(points)) table.notes.push_back("Not used: " + line + ".");
}

// The growth of each machine's steps with nodes, if some row is on more nodes than the growth starts from.
// A growth that adds nothing to any row need not be explained.
std::set<std::string> growths_of(const std::vector<PredictedPoint>& predicted) {
  std::set<std::string> lines;
  for (const PredictedPoint& one : predicted)
    if (one.prediction.growth && one.nodes() > one.prediction.growth->least_nodes)
      lines.insert(one.prediction.growth->text());
  return lines;
}

std::vector<std::string> notes_of(const std::vector<PredictedPoint>& predicted, const PredictQuery& query) {
  std::vector<std::string> notes = {
      "Nothing here was measured: an event simulation combines the study's collectives with the computing "
      "times of its training points (analysis/README.md)."};
  if (query.ranks_per_node == 0)
    notes.emplace_back(
        "nodes: with as many ranks on each as the study had on the fullest; --ranks-per-node changes it.");
  if (query.network && !predicted.empty())
    notes.emplace_back("across nodes: " + query.network->name + ", one link for each rank.");
  if (query.node_link && !predicted.empty())
    notes.emplace_back("within a node: " + query.node_link->name + ".");
  for (const std::string& line : growths_of(predicted)) notes.push_back(line);
  return notes;
}

ColumnsOf<PredictedPoint> layout_columns() {
  const auto of_point = [](const PredictedPoint& one) -> const Point& { return one.prediction.point; };
  return join(ColumnsOf<PredictedPoint>{{{"data", "ranks"},
                                         [](const auto& one) {
                                           return cells::count(one.prediction.point.data_ranks());
                                         }}},
              through<PredictedPoint>(
                  of_point, axis_columns({"tensor", "sequence_parallel", "context", "expert", "pipeline"})),
              ColumnsOf<PredictedPoint>{
                  {choice_column("schedule"),
                   [](const auto& one) {
                     const TrainingPoint& t = one.prediction.point.training;
                     return cells::words(t.pipeline > 1 ? brief_text("pipeline_schedule", t.schedule) : "");
                   }},
                  {choice_column("strategy"),
                   [](const auto& one) { return strategy_cell(one.prediction.point.training); }},
                  {{"micro-batches", ""},
                   [](const auto& one) { return cells::count(one.prediction.point.training.accumulation); }},
                  {{"of", "samples", true, true},
                   [](const auto& one) { return cells::count(one.prediction.point.training.batch_size); }}});
}

// "tensor 2, fsdp over 32 data-parallel ranks, 1 micro-batch of 4 samples"
std::string layout_batch_text(const Point& point) {
  const TrainingPoint& t = point.training;
  return fmt::format("{}{} over {} data-parallel rank{}, {} micro-batch{} of {} sample{}",
                     point.is_model_parallel() ? layout_text(point) + ", " : "",
                     brief_text("strategy", t.strategy), point.data_ranks(),
                     point.data_ranks() == 1 ? "" : "s", t.accumulation, t.accumulation == 1 ? "" : "es",
                     t.batch_size, t.batch_size == 1 ? "" : "s");
}

auto waiting_for(specs::Dimension dimension) {
  return [dimension](const PredictedPoint& one) {
    const SimulatedStep& parts = one.prediction.parts;
    return cells::percent(parts.waited_s[static_cast<size_t>(dimension)] / parts.step_s);
  };
}

ColumnsOf<PredictedPoint> waiting_columns() {
  constexpr const char* kGroup = "waiting for";
  return {{{"data", "% of step", true, false, kGroup}, waiting_for(specs::Dimension::data)},
          {{"tensor", "% of step", true, false, kGroup}, waiting_for(specs::Dimension::tensor)},
          {{.name = "expert", .unit = "% of step", .group = kGroup, .is_optional = true},
           [](const PredictedPoint& one) {
             return one.prediction.point.training.expert > 1 ? waiting_for(specs::Dimension::expert)(one)
                                                             : cells::words("");
           }},
          {{"stages", "% of step", true, false, kGroup},
           waiting_for(specs::Dimension::pipeline),
           "the bubble of the pipeline, and messages; mean over the stages."}};
}

std::vector<std::string> notes_of(const LayoutSearch& search, const PredictQuery& query) {
  const PredictedPoint& first = search.found.front();
  std::vector<std::string> notes = {fmt::format(
      "Nothing here was measured but {} on fewer ranks: the fastest of {} layouts of a global batch of {} "
      "that can be predicted, {} of which fit{}, and what a rule of thumb takes (no pipeline, the fewest "
      "tensor-parallel ranks, ZeRO stage 1, the largest micro-batch).",
      to_text(search.like->point.training.model), search.num_known, first.global_batch, search.num_fit,
      std::isnan(query.memory_bytes) ? " (the memory of a rank is unknown; --memory gives it)" : "")};
  if (search.num_fit == 0) notes.front() += " Shown are those that need least.";
  notes.push_back(
      fmt::format("Measure all of them: the first is often not the fastest. -o layouts.yaml writes them as a "
                  "suite for shardmark launch layouts.yaml -n {}; report ranks them.",
                  search.ranks));
  notes.push_back(how_it_was_checked());
  if (first.nodes() > 1) notes.push_back(search.growth);
  if (std::any_of(search.found.begin(), search.found.end(),
                  [](const PredictedPoint& one) { return one.prediction.by_flops; }))
    notes.emplace_back(
        "An extrapolation: tensor-parallel blocks were not measured, so their time is that of whole blocks "
        "in proportion to FLOPs; smaller matrix products take longer.");
  if (search.num_tried > search.num_known)
    notes.push_back(
        fmt::format("{} more cannot be predicted: {}.", search.num_tried - search.num_known, search.unknown));
  return notes;
}

}  // namespace

Throughput throughput_of(const PredictedPoint& one) {
  const Point& point = one.prediction.point;
  const auto table = known_table(point.training.model);
  return throughput_of(point, table ? table->sample.tokens() : 0, 1, one.prediction.step_s.value);
}

Table predictions_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                        const PredictQuery& query) {
  std::vector<const PredictedPoint*> rows;
  for (const PredictedPoint& one : predicted)
    if (one.prediction.unknown.empty()) rows.push_back(&one);
  ColumnsOf<PredictedPoint> setting = starting(Starts::group, prediction_setting_columns());
  setting.front().head.fold = true;
  const TrainingColumns labels(points);
  Table table = make_table("predictions", "Predicted steps",
                           join(via(&PredictedPoint::like, labels.family()), setting, where_columns(),
                                result_columns(query), speed_columns(), need_columns(query)),
                           rows);
  const std::vector<std::string> notes = notes_of(predicted, query);
  table.notes.insert(table.notes.begin(), notes.begin(), notes.end());
  add_not_used(table, points);
  add_left_out(table, why_unknown(predicted));
  return table;
}

BestPoints best_points(const std::vector<PredictedPoint>& predicted) {
  BestPoints best;
  for (const PredictedPoint& one : predicted) {
    if (!one.prediction.unknown.empty() || !one.fits) continue;
    const PredictedPoint*& known = best[{one.like, one.prediction.point.ranks}];
    if (known == nullptr || throughput_of(one).samples_per_s > throughput_of(*known).samples_per_s)
      known = &one;
  }
  return best;
}

Table best_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                 const PredictQuery& query) {
  const BestPoints best = best_points(predicted);
  std::vector<const PredictedPoint*> rows;
  for (const auto& [key, one] : best) rows.push_back(one);
  ColumnsOf<PredictedPoint> setting = prediction_setting_columns();
  std::swap(setting.front(), setting.back());
  const TrainingColumns labels(points);
  Table table = make_table("best", "Highest predicted throughput",
                           join(via(&PredictedPoint::like, labels.family()), where_columns(), setting,
                                result_columns(query), speed_columns(), need_columns(query)),
                           rows);
  table.notes = {
      "For each number of ranks, the strategy and batch with the highest throughput among those that fit."};
  for (const std::string& line : growths_of(predicted)) table.notes.push_back(line);
  add_not_used(table, points);
  add_left_out(table, why_none_is_best(predicted, best, query));
  return table;
}

namespace {

// A line for each family of which no layout takes the global batch. It names what would: the least larger
// global batch, and the largest smaller micro-batch with the same one.
std::vector<std::string> why_none_found(const std::vector<LayoutSearch>& searches) {
  std::set<std::string> lines;
  for (const LayoutSearch& search : searches) {
    std::string line = fmt::format("no layout of {} takes a global batch of {}", ranks_text(search.ranks),
                                   search.global_batch);
    if (search.larger)
      line += fmt::format("; take --global-batch {} ({})", search.larger->global_batch(),
                          layout_batch_text(*search.larger));
    if (search.smaller_micro_batch)
      line += fmt::format("{} --batch-size {} ({})", search.larger ? ", or" : "; take",
                          search.smaller_micro_batch->training.batch_size,
                          layout_batch_text(*search.smaller_micro_batch));
    lines.insert(line);
  }
  if (searches.empty()) return {"no family of whole models was measured, from which layouts follow"};
  return {lines.begin(), lines.end()};
}

}  // namespace

Table predicted_layouts_table(const LayoutSearch& search, const PredictQuery& query) {
  Table table = make_table(
      "predicted_layouts", "Layouts: a shortlist to measure, the fastest by prediction first",
      join(where_columns(), layout_columns(), without(result_columns(query), {"efficiency", "exposed"}),
           speed_columns(), need_columns(query), waiting_columns()),
      search.found);
  if (!search.found.empty()) table.notes = notes_of(search, query);
  return table;
}

std::vector<Table> predicted_layouts_tables(const std::vector<LayoutSearch>& searches,
                                            const PredictQuery& query) {
  std::vector<Table> tables;
  for (const LayoutSearch& search : searches) {
    if (search.found.empty()) continue;
    tables.push_back(predicted_layouts_table(search, query));
    if (tables.size() > 1) tables.back().key += "_" + std::to_string(tables.size());
  }
  // Without any layout there is no table to note the reason below, so it is the error. That a layout cannot
  // be predicted is said before that no layout exists.
  if (!tables.empty()) return tables;
  for (const LayoutSearch& search : searches)
    if (!search.unknown.empty()) throw UsageError("--layouts: " + search.unknown);
  throw UsageError("--layouts: " + fmt::format("{}", fmt::join(why_none_found(searches), "; ")));
}

}  // namespace shardmark
