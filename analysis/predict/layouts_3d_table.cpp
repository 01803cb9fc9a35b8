// Layouts, the fastest first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/cells.h"
#include "analysis/predict/layouts_3d.h"

namespace shardmark {
namespace {

constexpr size_t kMostRows = 8;

struct Row {
  laws::Grid grid;
  laws::Cost3d cost;
};

std::vector<Column> columns() {
  return {{"data", "", true, false, "ranks"},
          {"tensor", "", true, false, "ranks"},
          {"pipeline", "", true, false, "ranks"},
          {"micro-batches", ""},
          {"states", "MiB", true, false, "memory per rank"},
          {"activations", "MiB", true, false, "memory per rank"},
          {"compute", "ms", true, false, "of the step"},
          {"tensor", "ms", true, false, "of the step"},
          {"pipeline", "ms", true, false, "of the step"},
          {"bubble", "ms", true, false, "of the step"},
          {"data", "ms", true, false, "of the step"},
          {"step", "ms"},
          {"tokens/s", ""}};
}

std::vector<Cell> cells_of(const Row& row, const laws::Job3d& job) {
  const laws::Cost3d& c = row.cost;
  return {cells::count(row.grid.data),
          cells::count(row.grid.tensor),
          cells::count(row.grid.pipeline),
          cells::count(c.num_micro_batches),
          cells::mebibytes(c.state_bytes),
          cells::mebibytes(c.activation_bytes),
          cells::milliseconds(c.compute_s),
          cells::milliseconds(c.tensor_s),
          cells::milliseconds(c.pipeline_s),
          cells::milliseconds(c.bubble_s),
          cells::milliseconds(c.data_s),
          cells::milliseconds(c.step_s()),
          cells::number(static_cast<double>(job.global_batch * job.shape.sequence) / c.step_s())};
}

std::string counted(size_t number, const std::string& what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

struct Weighed {
  size_t all = 0, timed = 0, fitting = 0;
};

// How many there were, and which the rows are.
std::string chosen(const Weighed& weighed, const laws::Job3d& job, int64_t ranks, double memory_bytes) {
  if (weighed.all == 0)
    return fmt::format(
        "No layout uses all {} ranks: tensor groups divide the {} ranks of a node and the {} heads, stages "
        "the {} layers, and replicas the global batch of {} into micro-batches of {}.",
        ranks, job.ranks_per_node, job.shape.heads, job.shape.layers, job.global_batch, job.micro_batch);
  if (weighed.timed == 0)
    return fmt::format(
        "None of {} can be timed: the collectives it needs were not measured, within a "
        "node or across. Those that need least memory.",
        counted(weighed.all, "layout"));
  const std::string untimed =
      weighed.timed == weighed.all
          ? ""
          : fmt::format(" {} more need collectives that were not measured.", weighed.all - weighed.timed);
  const std::string layouts = counted(weighed.timed, "layout");
  if (std::isnan(memory_bytes))
    return fmt::format("The fastest of {}; the memory of a rank is not known.{}", layouts, untimed);
  const std::string memory = cells::mebibytes(memory_bytes).text;
  if (weighed.fitting == 0)
    return fmt::format("None of {} fits into {} MiB a rank; these need least.{}", layouts, memory, untimed);
  return fmt::format("The fastest of {}, {} of which fit into {} MiB a rank.{}", layouts, weighed.fitting,
                     memory, untimed);
}

std::vector<std::string> notes(const laws::Job3d& job) {
  return {
      fmt::format("By formula only; shardmark does not train in tensor groups and pipelines. Global batch "
                  "{}, micro-batches of {}{}; the optimizer's update and loading data are left out, and "
                  "nothing overlaps.",
                  job.global_batch, job.micro_batch,
                  job.recompute ? ", every layer's forward repeated in backward" : ""),
      "tensor: 4 all-reduces a layer and micro-batch (6 where forward is repeated), within a node "
      "(Shoeybi et al. 2019). pipeline: activations to the next stage, their gradients back. bubble: "
      "(pipeline - 1) micro-batches, one forward one backward (Narayanan et al., SC 2021). data: "
      "all-reduce of the gradients. The last stage counts: it also has the output layer.",
      "activations: T (4 C + (12 C + heads) / tensor) values a layer and micro-batch of T tokens, width "
      "C (Korthikanti et al. 2022, with fused attention and no dropout); the first stage keeps "
      "`pipeline` micro-batches."};
}

}  // namespace

Table layouts_3d_table(const laws::Job3d& job, int64_t ranks, double memory_bytes) {
  std::vector<Row> rows;
  for (const laws::Grid& grid : laws::grids(job, ranks)) rows.push_back({grid, laws::cost_3d(job, grid)});
  Weighed weighed{.all = rows.size()};
  const auto is_timed = [](const Row& row) { return std::isfinite(row.cost.step_s()); };
  weighed.timed = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), is_timed));
  if (weighed.timed > 0) std::erase_if(rows, [&](const Row& row) { return !is_timed(row); });
  const auto fits = [&](const Row& row) { return !(row.cost.bytes() > memory_bytes); };
  weighed.fitting = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), fits));
  const bool by_time = weighed.timed > 0 && weighed.fitting > 0;
  if (weighed.fitting > 0) std::erase_if(rows, [&](const Row& row) { return !fits(row); });
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return by_time ? a.cost.step_s() < b.cost.step_s() : a.cost.bytes() < b.cost.bytes();
  });
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  Table table{"layouts_3d",
              fmt::format("Layouts of {} ranks: data x tensor x pipeline, by formula", ranks),
              notes(job),
              columns(),
              {}};
  table.notes.insert(table.notes.begin(), chosen(weighed, job, ranks, memory_bytes));
  for (const Row& row : rows) table.rows.push_back(cells_of(row, job));
  return table;
}

}  // namespace shardmark
