// Published layouts of one job, ranked by prediction: how good the first choice is, and which fit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/frame/layouts.h"
#include "analysis/predict/published_playbook.h"
#include "analysis/predict/shortlist.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "base/stats.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr double kGpuBytes = 80 * 0x1p30;  // of an H100 80GB

// All layouts of a model on as many nodes.
struct JobRow {
  std::string model;
  int64_t nodes;
  std::vector<PlaybookPrediction> ran = {}, failed = {};  // ran: the shortest predicted step first
};

std::vector<JobRow> job_rows(const std::vector<PlaybookPrediction>& predictions) {
  std::map<std::pair<std::string, int64_t>, JobRow> rows;
  for (const PlaybookPrediction& one : predictions) {
    JobRow& row = rows.try_emplace({one.row->model, one.row->nodes}, JobRow{one.row->model, one.row->nodes})
                      .first->second;
    (one.row->ran() ? row.ran : row.failed).push_back(one);
  }
  std::vector<JobRow> all;
  for (auto& [key, row] : rows) {
    std::stable_sort(row.ran.begin(), row.ran.end(),
                     [](const auto& a, const auto& b) { return a.step_s < b.step_s; });
    all.push_back(std::move(row));
  }
  return all;
}

const PlaybookPrediction& best_of(const JobRow& row) {
  return *std::min_element(row.ran.begin(), row.ran.end(),
                           [](const auto& a, const auto& b) { return a.row->step_s < b.row->step_s; });
}

Cell job_layout_cell(const PlaybookPrediction& one) {
  const Point& point = one.row->point;
  return cells::words(fmt::format("{}, {}, {}", layout_text(point),
                                  brief_text("strategy", point.training.strategy),
                                  point.training.batch_size));
}

double measured_of(const PlaybookPrediction& one) { return one.row->step_s; }

double correlation(const JobRow& row) {
  std::vector<double> measured;
  for (const PlaybookPrediction& one : row.ran) measured.push_back(measured_of(one));
  return drift(measured);
}

PlaybookJob listed(const JobRow& row) {
  return playbook_shortlist(row.ran, shortlist_size(row.nodes, row.ran.front().growth.has_value()));
}

double loss(const JobRow& row, const PlaybookPrediction& one) {
  return 1 - measured_of(best_of(row)) / measured_of(one);
}

// What the best of the shortlist loses, as measured.
double shortlist_loss(const JobRow& row) {
  double least = 1;
  for (const PlaybookPrediction& one : listed(row)) least = std::min(least, loss(row, one));
  return least;
}

bool fits(const PlaybookPrediction& one) { return one.memory_bytes <= kGpuBytes; }

Cell count_cell(const std::vector<PlaybookPrediction>& all, bool fitting) {
  const auto right =
      std::count_if(all.begin(), all.end(), [&](const auto& one) { return fits(one) == fitting; });
  return cells::words(fmt::format("{} of {}", right, all.size()));
}

ColumnsOf<JobRow> job_columns() {
  return {{{"model", "", false, true, "", Starts::group},
           [](const auto& row) { return cells::words("Llama " + row.model); }},
          {{"nodes", ""}, [](const auto& row) { return cells::count(row.nodes); }},
          {{"layouts", ""},
           [](const auto& row) { return cells::count(std::ssize(row.ran)); },
           "that ran: tensor, pipeline and data-parallel ranks, ZeRO stages (0 as ddp, 1 as "
           "fsdp(shard=optimizer)) and micro-batches of the same global batch."},
          {{"best", "", false},
           [](const auto& row) { return job_layout_cell(best_of(row)); },
           "layout, strategy and samples of a micro-batch of the shortest step measured."},
          {{"first choice", "", false},
           [](const auto& row) { return job_layout_cell(row.ran.front()); },
           "of the shortest step predicted, among the layouts that ran."},
          {{"loss", "%"},
           [](const auto& row) { return cells::percent(loss(row, row.ran.front())); },
           "tokens/s that the first choice has less than the best, both as measured."},
          {{"of", "layouts", true, false, "shortlist"},
           [](const auto& row) { return cells::count(std::ssize(listed(row))); },
           "what --layouts would have measured of them."},
          {{"loss", "%", true, false, "shortlist"},
           [](const auto& row) { return cells::percent(shortlist_loss(row)); },
           "tokens/s that the best of the shortlist has less than the best of all, both as measured."},
          {{"rank correlation", ""},
           [](const auto& row) { return cells::number(correlation(row), 2); },
           "Spearman's, of predicted and measured steps."},
          {{"ran", "", false, false, "predicted right"},
           [](const auto& row) { return count_cell(row.ran, true); },
           "layouts that ran and by prediction fit into 80 GiB."},
          {{"did not run", "", false, false, "predicted right"},
           [](const auto& row) { return count_cell(row.failed, false); },
           "layouts that did not run, for whatever reason, and by prediction do not fit."}};
}

}  // namespace

PlaybookJob playbook_shortlist(const PlaybookJob& ran, size_t size) {
  std::vector<LayoutCandidate> candidates;
  for (const PlaybookPrediction& one : ran) candidates.push_back({&one.row->point, one.step_s});
  PlaybookJob listed;
  for (const size_t i : shortlist(candidates, size)) listed.push_back(ran[i]);
  return listed;
}

Table published_layouts_table(const std::vector<PlaybookPrediction>& predictions) {
  Table table = make_table("published_layouts", "Published layouts, ranked by prediction", job_columns(),
                           job_rows(predictions));
  const std::vector<PlaybookRow>& rows = playbook_rows();
  table.notes = {
      "Hugging Face, ultra-scale playbook: benchmarks of nanotron on nodes of 8 H100 (huggingface/nanotron, "
      "scripts/scaling_benchmarks.py; 0e0a27e), 256 sequences of 4,096 tokens a step.",
      "Rows on one node calibrate the computing, by tensor-parallel ranks and micro-batch, and the memory of "
      "each model, by one factor; they are not ranked. Links are those of data sheets. Rows with more stages "
      "than blocks are left out. Rows on fewer nodes say how steps grow with nodes.",
      fmt::format("{} of the {} rows have another global batch. Their steps do not compare with the others', "
                  "so they are left out, too.",
                  std::count_if(rows.begin(), rows.end(),
                                [](const auto& row) { return row.point.global_batch() != kPlaybookBatch; }),
                  format_count(static_cast<double>(rows.size())))};
  const auto most_nodes =
      std::max_element(predictions.begin(), predictions.end(),
                       [](const auto& a, const auto& b) { return a.row->nodes < b.row->nodes; });
  if (most_nodes != predictions.end() && most_nodes->growth)
    table.notes.push_back(fmt::format("Of the rows on fewer than {} nodes: {}", most_nodes->row->nodes,
                                      most_nodes->growth->text()));
  return table;
}

}  // namespace shardmark
