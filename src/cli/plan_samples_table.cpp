// The first samples that each rank trains on, as the sampler of a run assigns them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "cli/plan_tables.h"
#include "data/order/sampler.h"
#include "specs/specs.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr int64_t kMostRanks = 64;  // more rows would not be read

int64_t num_samples(const Point& point) {
  const Choice& data = point.training.data;
  return specs::data_specs().at(data.name).num_samples(data.options);
}

// The samples of a rank: "17, 4, 250", in the order of micro-batches and steps. A later epoch is named where
// it begins.
std::string first_samples(const Point& point, int64_t rank, int64_t count) {
  const TrainingPoint& t = point.training;
  const DistributedSampler sampler(point, num_samples(point), rank);
  std::string text;
  int64_t epoch = 0, written = 0;
  for (int64_t micro_batch = 0; written < count; ++micro_batch)
    for (const Draw& draw : sampler.draw(micro_batch / t.accumulation, micro_batch % t.accumulation)) {
      if (written++ == count) return text;
      text += text.empty() ? "" : ", ";
      if (draw.epoch != epoch) text += fmt::format("epoch {}: ", epoch = draw.epoch);
      text += std::to_string(draw.index);
    }
  return text;
}

struct Reader {
  const Point* point;
  int64_t rank;
};

ColumnsOf<Reader> columns(int64_t count) {
  const ColumnsOf<Point> settings = {
      {{"data", "", false, true},
       [](const Point& point) { return choice_cell("data", point.training.data); }},
      {{"samples", "", true, true}, [](const Point& point) { return cells::count(num_samples(point)); }},
      {{"seed", "", true, true}, [](const Point& point) { return cells::count(point.seed); }}};
  const ColumnsOf<Point> world = {
      {{"batch", "per rank", true, true}, batch_cell},
      {{"ranks", "", true, true}, [](const Point& point) { return cells::count(point.ranks); }}};
  const ColumnsOf<Reader> read = {
      {{"rank", ""}, [](const auto& reader) { return cells::count(reader.rank); }},
      {{"first", "", false},
       [=](const auto& reader) { return cells::words(first_samples(*reader.point, reader.rank, count)); },
       "indices into the data source, in the order in which the rank trains on them."}};
  return join(
      via(&Reader::point, starting(Starts::section, join(settings, axis_columns({"accumulation"}), world))),
      read);
}

}  // namespace

Table samples_table(const std::vector<const Point*>& points, int64_t count) {
  std::vector<Reader> rows;
  using Key = std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>;
  std::set<Key> known;
  std::set<std::string> by_files;
  for (const Point* point : points) {
    const TrainingPoint& t = point->training;
    if (t.batch_size == kLargest) continue;
    if (num_samples(*point) == 0)
      by_files.insert(brief_text("data", t.data));
    else if (known.emplace(to_text(t.data), point->seed, t.accumulation, t.batch_size, point->ranks).second)
      for (int64_t rank = 0; rank < std::min(point->ranks, kMostRanks); ++rank) rows.push_back({point, rank});
  }
  Table table = make_table(
      "samples",
      fmt::format("The first {} of each rank", count == 1 ? "sample" : fmt::format("{} samples", count)),
      columns(count), rows);
  table.explanations.emplace(
      table.explanations.begin(),
      "An epoch is one shuffle of all samples by seed and epoch, which every rank computes "
      "for itself. A step takes the next ranks x accumulation x batch of it, and rank r the "
      "r-th part of these.");
  if (!by_files.empty())
    table.notes.push_back(
        fmt::format("Left out: {}: how many samples there are is known only once the files are read.",
                    fmt::join(by_files, ", ")));
  if (std::any_of(known.begin(), known.end(), [](const Key& key) { return std::get<4>(key) > kMostRanks; }))
    table.notes.push_back(fmt::format("Of more than {0} ranks, the first {0} are shown.", kMostRanks));
  return table;
}

}  // namespace shardmark
