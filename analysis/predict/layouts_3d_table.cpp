// Layouts, the fastest first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/predict/layouts_3d.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"

namespace shardmark {
namespace {

constexpr size_t kMostRows = 8;

struct LayoutRow {
  parallel3d::Grid grid;
  parallel3d::Cost3d cost;
};

auto count_of(int64_t parallel3d::Grid::*ranks) {
  return [ranks](const LayoutRow& row) { return cells::count(row.grid.*ranks); };
}
auto milliseconds_of(double parallel3d::Cost3d::*seconds) {
  return [seconds](const LayoutRow& row) { return cells::milliseconds(row.cost.*seconds); };
}
auto mebibytes_of(double parallel3d::Cost3d::*bytes) {
  return [bytes](const LayoutRow& row) { return cells::mebibytes(row.cost.*bytes); };
}

ColumnsOf<LayoutRow> grid_columns() {
  return {
      {{"data", "", true, false, "ranks"}, count_of(&parallel3d::Grid::data)},
      {{"tensor", "", true, false, "ranks"}, count_of(&parallel3d::Grid::tensor)},
      {{"pipeline", "", true, false, "ranks"}, count_of(&parallel3d::Grid::pipeline)},
      {{"micro-batches", ""}, [](const auto& row) { return cells::count(row.cost.num_micro_batches); }},
      {{"states", "MiB", true, false, "memory per rank"},
       mebibytes_of(&parallel3d::Cost3d::state_bytes),
       "parameters of its pipeline stage and tensor shard x (weights, gradients, moments), on the rank that "
       "has most."},
      {{"activations", "MiB", true, false, "memory per rank"},
       mebibytes_of(&parallel3d::Cost3d::activation_bytes),
       "T (4 C + (12 C + heads) / tensor) values a layer and micro-batch of T tokens, width C (Korthikanti "
       "et al. 2022, with fused attention and no dropout); the first stage keeps `pipeline` micro-batches."}};
}

ColumnsOf<LayoutRow> time_columns(const parallel3d::Job3d& job) {
  constexpr const char* kGroup = "of the step";
  const auto tokens = static_cast<double>(job.global_batch * job.shape.sequence);
  return {{{"compute", "ms", true, false, kGroup},
           milliseconds_of(&parallel3d::Cost3d::compute_s),
           "micro-batches x its share of the FLOPs x the model's forward and backward, on the last stage, "
           "which also has the output layer."},
          {{"tensor", "ms", true, false, kGroup},
           milliseconds_of(&parallel3d::Cost3d::tensor_s),
           "4 all-reduces a layer and micro-batch (6 where forward is repeated), within a node (Shoeybi et "
           "al. 2019)."},
          {{"pipeline", "ms", true, false, kGroup},
           milliseconds_of(&parallel3d::Cost3d::pipeline_s),
           "activations to the next stage, their gradients back."},
          {{"bubble", "ms", true, false, kGroup},
           milliseconds_of(&parallel3d::Cost3d::bubble_s),
           "(pipeline - 1) x (compute + tensor + pipeline) of a micro-batch, one forward one backward "
           "(Narayanan et al., SC 2021)."},
          {{"data", "ms", true, false, kGroup},
           milliseconds_of(&parallel3d::Cost3d::data_s),
           "all-reduce of the largest stage's gradients, and of the embedding that first and last stage "
           "share (Narayanan et al., SC 2021, 2.2)."},
          {{"step", "ms"},
           [](const auto& row) { return cells::milliseconds(row.cost.step_s()); },
           "the sum of these five."},
          {{"tokens/s", ""},
           [=](const auto& row) { return cells::number(tokens / row.cost.step_s()); },
           "global batch x sequence / step."}};
}

std::string counted(size_t number, const std::string& what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

struct Weighed {
  size_t all = 0, timed = 0, fitting = 0;
};

// How many there were, and which the rows are.
std::string chosen(const Weighed& weighed, const parallel3d::Job3d& job, int64_t ranks, double memory_bytes) {
  if (weighed.all == 0)
    return fmt::format(
        "No layout uses all {} ranks: tensor groups divide the {} ranks of a node and the {} heads, stages "
        "the {} layers, and replicas the global batch of {} into micro-batches of {}.",
        ranks, job.ranks_per_node, job.shape.heads, job.shape.layers, job.global_batch, job.micro_batch);
  if (weighed.timed == 0)
    return fmt::format(
        "None of {} can be timed: the collectives it needs were not measured, within a node or across nodes. "
        "Shown are those that need the least memory.",
        counted(weighed.all, "layout"));
  const std::string untimed =
      weighed.timed == weighed.all
          ? ""
          : fmt::format(" {} more need collectives that were not measured.", weighed.all - weighed.timed);
  const std::string layouts = counted(weighed.timed, "layout");
  if (std::isnan(memory_bytes))
    return fmt::format("The fastest of {}; the memory per rank is unknown.{}", layouts, untimed);
  const std::string memory = cells::mebibytes(memory_bytes).text;
  if (weighed.fitting == 0)
    return fmt::format("None of {} fits into {} MiB per rank; shown are those that need the least.{}",
                       layouts, memory, untimed);
  return fmt::format("The fastest of {}, {} of which fit into {} MiB per rank.{}", layouts, weighed.fitting,
                     memory, untimed);
}

std::string formula_note(const parallel3d::Job3d& job) {
  return fmt::format(
      "By formula only; shardmark does not train in tensor groups and pipelines. Global batch {}, "
      "micro-batches of {}{}; the optimizer's update and loading data are left out, and nothing overlaps.",
      job.global_batch, job.micro_batch, job.recompute ? ", every layer's forward repeated in backward" : "");
}

}  // namespace

Table layouts_3d_table(const parallel3d::Job3d& job, int64_t ranks, double memory_bytes) {
  std::vector<LayoutRow> rows;
  for (const parallel3d::Grid& grid : parallel3d::grids(job, ranks))
    rows.push_back({grid, parallel3d::cost_3d(job, grid)});
  Weighed weighed{.all = rows.size()};
  const auto is_timed = [](const LayoutRow& row) { return std::isfinite(row.cost.step_s()); };
  weighed.timed = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), is_timed));
  if (weighed.timed > 0) std::erase_if(rows, [&](const LayoutRow& row) { return !is_timed(row); });
  const auto fits = [&](const LayoutRow& row) { return !(row.cost.bytes() > memory_bytes); };
  weighed.fitting = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), fits));
  const bool by_time = weighed.timed > 0 && weighed.fitting > 0;
  if (weighed.fitting > 0) std::erase_if(rows, [&](const LayoutRow& row) { return !fits(row); });
  std::stable_sort(rows.begin(), rows.end(), [&](const LayoutRow& a, const LayoutRow& b) {
    return by_time ? a.cost.step_s() < b.cost.step_s() : a.cost.bytes() < b.cost.bytes();
  });
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  Table table = make_table("layouts_3d",
                           fmt::format("Layouts of {} ranks: data x tensor x pipeline, by formula", ranks),
                           join(grid_columns(), time_columns(job)), rows);
  table.notes.insert(table.notes.begin(), {chosen(weighed, job, ranks, memory_bytes), formula_note(job)});
  return table;
}

}  // namespace shardmark
