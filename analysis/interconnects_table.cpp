// Interconnects compared: Amdahl's curve of a step over each link, and the all-reduce of its gradients.
#include <fmt/format.h>

#include <array>

#include "analysis/cells.h"
#include "analysis/interconnects.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

constexpr std::array<int64_t, 5> kRanks = {2, 8, 32, 128, 512};

std::vector<Column> columns() {
  std::vector<Column> columns = {{"step on 1 rank", "ms", true, true},  {"gradients", "MB", true, true},
                                 {"name", "", false, false, "link"},    {"alpha", "us", true, false, "link"},
                                 {"rate", "GB/s", true, false, "link"}, {"p", "%"}};
  for (const int64_t ranks : kRanks)
    columns.push_back({fmt::format("{} ranks", ranks), "", true, false, "speed-up"});
  columns.push_back({"limit", "", true, false, "speed-up"});
  return columns;
}

std::vector<Cell> row(const OneRankStep& workload, const laws::Link& link) {
  const double p = parallel_share(workload, link);
  std::vector<Cell> row = {cells::milliseconds(workload.step_s),
                           cells::number(workload.gradient_bytes / 1e6),
                           cells::words(link.name),
                           cells::number(link.latency_s * 1e6, 3),
                           cells::number(link.bytes_per_s / 1e9, 3),
                           cells::percent(p, 2)};
  for (const int64_t ranks : kRanks)
    row.push_back(cells::number(interconnect_speed_up(workload, link, static_cast<double>(ranks)), 3));
  row.push_back(cells::number(1 / (1 - p), 3));
  return row;
}

std::vector<std::string> notes(const std::vector<laws::Link>& links) {
  std::string described;
  for (const laws::Link& link : links)
    described += (described.empty() ? "" : "; ") + link.name + ": " + link.description;
  return {
      "By formula, nothing measured but the step on 1 rank: speed-up = T(1) / (T(1)/n + A(n)) at the same "
      "global batch, "
      "A(n) = 2 (n-1) (alpha + M / n / rate) a ring all-reduce of the gradients M, none of it hidden behind "
      "backward, "
      "every rank with the link for itself.",
      "p: Amdahl's share that more ranks speed up, 1 - 2 M / rate / T(1); limit: 1 / (1-p). alpha keeps "
      "speed-ups below "
      "it, and turns them around where n is large. p below 0: the all-reduce alone takes longer than the "
      "step, and speed-ups fall to the limit.",
      "Rates are data sheets', each way; collectives reach about 80 % of them. " + described + ".",
  };
}

Table empty_table(std::vector<Column> leading, const std::vector<laws::Link>& links) {
  Table table{"interconnects",
              "Interconnects: Amdahl's curve of a step over each link, by formula",
              notes(links),
              {},
              {}};
  table.columns = concat<Column>({std::move(leading), columns()});
  return table;
}

}  // namespace

Table interconnects_table(const std::vector<MergedPoint>& points, const std::vector<laws::Link>& links) {
  Table table = empty_table(concat<Column>({TrainingColumns::family_columns(),
                                            {{"global batch", "", true, true}, {"marks", "", false, true}}}),
                            links);
  table.num_group_columns = table.num_section_columns = TrainingColumns::kNumFamilyColumns + 2;
  const TrainingColumns labels(points);
  for (const OneRankStep& workload : workloads(points))
    for (const laws::Link& link : links)
      table.rows.push_back(
          concat<Cell>({labels.family_cells(*workload.merged),
                        {cells::count(workload.merged->point.global_batch()), doubt_cell(*workload.merged)},
                        row(workload, link)}));
  return table;
}

Table interconnects_table(const std::vector<OneRankStep>& workloads, const std::vector<laws::Link>& links) {
  Table table = empty_table({{"model", "", false, true}}, links);
  table.num_group_columns = table.num_section_columns = 1;
  for (const OneRankStep& workload : workloads)
    for (const laws::Link& link : links)
      table.rows.push_back(concat<Cell>({{cells::words(workload.label)}, row(workload, link)}));
  return table;
}

Table all_reduce_table(const std::vector<OneRankStep>& workloads, const std::vector<laws::Link>& links,
                       int64_t ranks) {
  Table table{
      "all_reduce_overhead",
      fmt::format("All-reduce of the gradients on {} ranks, by formula", ranks),
      {fmt::format(
          "A cell is 2 (n-1) (alpha + M / n / rate) with n = {} ranks, M the gradients' bytes: what a "
          "ring all-reduce adds to every step, unless backward hides it.",
          ranks)},
      {{"model", "", false}, {"gradients", "MB"}},
      {}};
  for (const laws::Link& link : links)
    table.columns.push_back({link.name, "ms", true, false, fmt::format("{:g} GB/s", link.bytes_per_s / 1e9)});
  for (const OneRankStep& workload : workloads) {
    std::vector<Cell> row = {cells::words(workload.label), cells::number(workload.gradient_bytes / 1e6)};
    for (const laws::Link& link : links)
      row.push_back(cells::milliseconds(
          laws::ring_all_reduce_s(workload.gradient_bytes, static_cast<double>(ranks), link)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace shardmark
