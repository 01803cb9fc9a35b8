// Interconnects compared: Amdahl's curve of a step over each link, and the all-reduce of its gradients.
#include "analysis/stats/interconnects.h"

#include <fmt/format.h>

#include <array>

#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

constexpr std::array<int64_t, 5> kRanks = {2, 8, 32, 128, 512};

struct InterconnectRow {
  const OneRankStep* workload;
  const specs::Link* link;
  const MergedPoint* merged;  // where the step was measured; nullptr where it was not
};

std::vector<InterconnectRow> rows_of(const std::vector<OneRankStep>& workloads,
                                     const std::vector<specs::Link>& links) {
  std::vector<InterconnectRow> rows;
  for (const OneRankStep& workload : workloads)
    for (const specs::Link& link : links) rows.push_back({&workload, &link, workload.merged});
  return rows;
}

ColumnsOf<InterconnectRow> step_columns() {
  return {{{"step on 1 rank", "ms", true, true},
           [](const auto& row) { return cells::milliseconds(row.workload->step_s); }},
          {{"gradients", "MB", true, true},
           [](const auto& row) { return cells::number(row.workload->gradient_bytes / 1e6); }},
          {{"name", "", false, false, "link"}, [](const auto& row) { return cells::words(row.link->name); }},
          {{"alpha", "us", true, false, "link"},
           [](const auto& row) { return cells::number(row.link->latency_s * 1e6, 3); },
           "latency; keeps speed-ups below the limit, and makes them fall again where n is large."},
          {{"rate", "GB/s", true, false, "link"},
           [](const auto& row) { return cells::number(row.link->bytes_per_s / 1e9, 3); },
           "from its data sheet, each way; collectives reach about 80 % of it."},
          {{"p", "%"},
           [](const auto& row) { return cells::percent(parallel_share(*row.workload, *row.link), 2); },
           "Amdahl's share that more ranks speed up, 1 - 2 M / rate / T(1), M the bytes of the gradients. "
           "Below 0: the all-reduce alone takes longer than the step, and speed-ups fall to the limit."}};
}

ColumnsOf<InterconnectRow> speed_up_columns() {
  ColumnsOf<InterconnectRow> columns;
  for (const int64_t ranks : kRanks)
    columns.push_back(
        {{fmt::format("{} ranks", ranks), "", true, false, "speed-up"},
         [ranks](const auto& row) {
           return cells::number(row.workload->divides_over(ranks)
                                    ? interconnect_speed_up(*row.workload, *row.link, ranks)
                                    : Measures::kNone,
                                3);
         },
         "by formula, with only the step on 1 rank measured: T(1) / (T(1)/n + A(n)) at the same global "
         "batch, A(n) the all-reduce of the gradients M, without overlap with backward, and with a link of "
         "its own for every rank: as a ring, 2 (n-1) (alpha + M / n / rate) (Patarasuk and Yuan, JPDC 69(2), "
         "2009), or as a tree, 2 (ceil(log2 n) alpha + M / rate), whichever is faster. Not given for more "
         "ranks than the global batch has samples."});
  columns.push_back(
      {{"limit", "", true, false, "speed-up"},
       [](const auto& row) { return cells::number(1 / (1 - parallel_share(*row.workload, *row.link)), 3); },
       "1 / (1-p): Amdahl's law with the all-reduce on many ranks as the part that does not speed up."});
  return columns;
}

Table table_of(const ColumnsOf<InterconnectRow>& setting, const std::vector<InterconnectRow>& rows,
               const std::vector<specs::Link>& links) {
  Table table =
      make_table("interconnects", "Interconnects: Amdahl's curve of a step over each link, by formula",
                 join(starting(Starts::section, setting), step_columns(), speed_up_columns()), rows);
  std::string described;
  for (const specs::Link& link : links)
    described += (described.empty() ? "" : "; ") + link.name + ": " + link.description;
  table.notes.push_back(described + ".");
  table.notes.emplace_back(
      "NVLink and PCIe join the GPUs of one node, mostly 8 (72 in a GB200 NVL72). On more ranks their rows "
      "say what a network as fast as that would give.");
  return table;
}

}  // namespace

Table interconnects_table(const std::vector<MergedPoint>& points, const std::vector<specs::Link>& links) {
  const TrainingColumns labels(points);
  const std::vector<OneRankStep> measured = workloads(points);
  const ColumnsOf<MergedPoint> setting = {
      {{"global batch", "", true, true},
       [](const auto& merged) { return cells::count(merged.point.global_batch()); }},
      {{"warnings", "", false, true}, warning_cell}};
  return table_of(via(&InterconnectRow::merged, join(labels.family(), setting)), rows_of(measured, links),
                  links);
}

Table interconnects_table(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links) {
  return table_of(
      {{{"model", "", false, true}, [](const auto& row) { return cells::words(row.workload->label); }}},
      rows_of(workloads, links), links);
}

Table all_reduce_table(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                       int64_t ranks) {
  ColumnsOf<OneRankStep> columns = {
      {{"model", "", false}, [](const auto& workload) { return cells::words(workload.label); }},
      {{"gradients", "MB"},
       [](const auto& workload) { return cells::number(workload.gradient_bytes / 1e6); }}};
  for (const specs::Link& link : links)
    columns.push_back({{link.name, "ms", true, false, fmt::format("{:g} GB/s", link.bytes_per_s / 1e9)},
                       [&link, ranks](const auto& workload) {
                         return cells::milliseconds(all_reduce_s(workload.gradient_bytes, link, ranks));
                       }});
  Table table = make_table("all_reduce_overhead",
                           fmt::format("All-reduce of the gradients on {} ranks, by formula", ranks), columns,
                           workloads);
  table.explanations = {fmt::format(
      "A cell is what the all-reduce adds to every step, unless backward hides it: with n = {} ranks and M "
      "the gradients' bytes 2 (n-1) (alpha + M / n / rate) as a ring, 2 (ceil(log2 n) alpha + M / rate) as a "
      "tree, whichever is faster.",
      ranks)};
  return table;
}

}  // namespace shardmark
