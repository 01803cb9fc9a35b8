// Published layouts of one job, ranked by prediction: how good the first choice is, and which fit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/predict/published_scaling.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "base/stats.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr double kGpuBytes = 80 * 0x1p30;  // of an H100 80GB

struct Layout {
  const PublishedRow* row;
  double predicted_s;
};

// All layouts of a job on as many ranks.
struct LayoutsRow {
  std::string job;
  int64_t ranks;
  bool is_kept_back = true;  // no row of it calibrates
  std::vector<Layout> ran = {};
  std::vector<Point> failed = {};
};

std::vector<LayoutsRow> layouts_rows() {
  std::map<std::pair<std::string, int64_t>, LayoutsRow> rows;
  const auto row_of = [&](const std::string& job, int64_t ranks) -> LayoutsRow& {
    return rows.try_emplace({job, ranks}, LayoutsRow{job, ranks}).first->second;
  };
  for (const PublishedScaling& published : published_scalings()) {
    if (published.job.empty()) continue;
    const std::vector<PredictedRow> predicted = predicted_rows(published);
    for (size_t i = 0; i < predicted.size(); ++i) {
      LayoutsRow& row = row_of(published.job, published.rows[i].point.ranks);
      row.ran.push_back({&published.rows[i], predicted[i].step_s});
      if (i == 0) row.is_kept_back = false;
    }
  }
  for (const auto& [job, point] : published_failures()) row_of(job, point.ranks).failed.push_back(point);
  std::vector<LayoutsRow> all;
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  return all;
}

bool is_ranked(const LayoutsRow& row) { return row.is_kept_back && row.ran.size() > 1; }

const Layout& best_of(const LayoutsRow& row) {
  return *std::min_element(row.ran.begin(), row.ran.end(),
                           [](const Layout& a, const Layout& b) { return a.row->step_s < b.row->step_s; });
}

const Layout& worst_of(const LayoutsRow& row) {
  return *std::max_element(row.ran.begin(), row.ran.end(),
                           [](const Layout& a, const Layout& b) { return a.row->step_s < b.row->step_s; });
}

const Layout& first_choice(const LayoutsRow& row) {
  return *std::min_element(row.ran.begin(), row.ran.end(),
                           [](const Layout& a, const Layout& b) { return a.predicted_s < b.predicted_s; });
}

Cell layout_cell(const Layout& layout) {
  const TrainingPoint& t = layout.row->point.training;
  return cells::words(fmt::format("{}, {}", brief_text("strategy", t.strategy), t.batch_size));
}

double correlation(std::vector<Layout> ran) {
  std::sort(ran.begin(), ran.end(),
            [](const Layout& a, const Layout& b) { return a.predicted_s < b.predicted_s; });
  std::vector<double> measured;
  for (const Layout& layout : ran) measured.push_back(layout.row->step_s);
  return drift(measured);
}

bool fits(const Point& point) { return predicted_memory_bytes(point) <= kGpuBytes; }

Cell share_cell(int64_t right, size_t all) {
  return all == 0 ? cells::words("") : cells::words(fmt::format("{} of {}", right, all));
}

ColumnsOf<LayoutsRow> layouts_columns() {
  return {
      {{"job", "", false, true, "", Starts::group}, [](const auto& row) { return cells::words(row.job); }},
      {{"ranks", ""}, [](const auto& row) { return cells::count(row.ranks); }},
      {{"layouts", ""},
       [](const auto& row) { return cells::count(std::ssize(row.ran)); },
       "strategies and micro-batches that ran, with the same global batch."},
      {{"best", "", false},
       [](const auto& row) { return is_ranked(row) ? layout_cell(best_of(row)) : cells::words(""); },
       "strategy and micro-batch of the shortest step measured; nothing where fewer than two were kept "
       "back."},
      {{"first choice", "", false},
       [](const auto& row) { return is_ranked(row) ? layout_cell(first_choice(row)) : cells::words(""); },
       "of the shortest step predicted."},
      {{"loss", "%"},
       [](const auto& row) {
         return is_ranked(row) ? cells::percent(first_choice(row).row->step_s / best_of(row).row->step_s - 1)
                               : cells::words("");
       },
       "how much longer the step of the first choice takes than the best, both as measured."},
      {{"worst", "%"},
       [](const auto& row) {
         return is_ranked(row) ? cells::percent(worst_of(row).row->step_s / best_of(row).row->step_s - 1)
                               : cells::words("");
       },
       "the same of the worst choice."},
      {{"rank correlation", ""},
       [](const auto& row) {
         return is_ranked(row) && row.ran.size() > 2 ? cells::number(correlation(row.ran), 2)
                                                     : cells::words("");
       },
       "Spearman's, of predicted and measured steps, for three layouts or more."},
      {{"ran", "", false, false, "predicted right"},
       [](const auto& row) {
         return share_cell(std::count_if(row.ran.begin(), row.ran.end(),
                                         [](const Layout& layout) { return fits(layout.row->point); }),
                           row.ran.size());
       },
       "layouts that ran and by prediction fit into 80 GiB."},
      {{"did not run", "", false, false, "predicted right"},
       [](const auto& row) {
         return share_cell(std::count_if(row.failed.begin(), row.failed.end(),
                                         [](const Point& point) { return !fits(point); }),
                           row.failed.size());
       },
       "layouts that did not run and by prediction do not fit."}};
}

}  // namespace

Table published_layouts_table() {
  Table table = make_table("published_layouts", "Published layouts, ranked by prediction", layouts_columns(),
                           layouts_rows());
  table.notes.emplace_back(
      "Rows on 8 ranks calibrate the computing, for each micro-batch, and are not ranked; all others are "
      "kept "
      "back. Nothing calibrates memory.");
  return table;
}

}  // namespace shardmark
