// Rows of goodput, and their table.
#include "analysis/stats/goodput.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "base/error.h"
#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr double kMany = 1e9;  // tokens or samples

// What decides how long a whole checkpoint takes: the machine, and what the state consists of. Ranks and
// strategy are no part of the key, because a whole checkpoint has the same bytes whoever writes it.
std::string state_key(const std::string& machine, const TrainingPoint& t) {
  return fmt::format("{}\n{}\n{}\n{}", machine, to_text(t.model), to_text(t.optimizer), t.precision);
}

void append_series(std::vector<double>& all, const Record& record, std::string_view name) {
  if (const Series* times = record.series(name))
    all.insert(all.end(), times->values.begin(), times->values.end());
}

bool save_is(const Choice& save, const char* option, bool value) {
  const OptionValue* const found = save.options.find(option);
  return found != nullptr && *found == OptionValue(value);
}

// Whether checkpoints are written as a run of `train` does it.
bool writes_as_train(const Choice& save) {
  return save.name == "full" && save_is(save, "sync", true) && save_is(save, "async", false);
}

// A time that the user gave wins over measured ones. The result is NaN if there is neither.
double given_or_measured(double given_s, const std::vector<double>& measured_s) {
  return !std::isnan(given_s) || measured_s.empty() ? given_s : median(measured_s);
}

ColumnsOf<GoodputRow> goodput_settings() {
  return {{{"batch", "per rank", true, true, "", Starts::group},
           [](const auto& row) { return cells::count(row.point.training.batch_size); }},
          {choice_column("strategy"), [](const auto& row) { return strategy_cell(row.point.training); }},
          {{"ranks", ""}, [](const auto& row) { return cells::count(row.point.ranks); }},
          {{"nodes", "", true, true}, [](const auto& row) { return cells::count(row.nodes); }}};
}

ColumnsOf<GoodputRow> interval_columns() {
  constexpr const char* kGroup = "best interval";
  return {
      {{"failure every", "h"},
       [](const auto& row) { return cells::number(row.job.between_s / 3600); },
       "mean time between failures that stop the job: 1 / (failures per node and hour x nodes)."},
      {{"write", "s", true, true, "checkpoint"},
       [](const auto& row) { return cells::number(row.job.write_s); },
       "ranks wait for it: checkpoint_write of --failures; or the stall that the point itself measured "
       "(save); or the median over the checkpoints of training runs, and of points with save full, of "
       "the same model, optimizer and precision on the same machine."},
      {{"read", "s", true, true, "checkpoint"},
       [](const auto& row) { return cells::number(row.job.read_s); },
       "checkpoint_read of --failures, or as the point or training runs that went on measured; 0: part of "
       "restart."},
      {{"Young", "s", true, false, kGroup},
       [](const auto& row) { return cells::number(young_interval_s(row.job)); },
       "computing between two checkpoints, by first order: sqrt(2 write M), M the time between failures "
       "(Young, CACM 17(9), 1974)."},
      {{"Daly", "s", true, false, kGroup},
       [](const auto& row) { return cells::number(row.interval_s()); },
       "by higher order: sqrt(2 write M) (1 + sqrt(write / (2 M)) / 3 + write / (18 M)) - write; M where "
       "write is 2 M or more (Daly, FGCS 22(3), 2006)."},
      {{"steps", "", true, false, kGroup},
       [](const auto& row) {
         const double steps = std::round(row.interval_s() / row.step_s());
         return cells::number(steps < 1 ? 1 : steps, 1);
       },
       "Daly's interval / step: for train --checkpoint-every."}};
}

ColumnsOf<GoodputRow> kept_columns() {
  const auto kept = [](const char* name) {
    return Column{.name = name, .group = "kept", .is_optional = true};
  };
  constexpr const char* kKept = "throughput x goodput.";
  return {
      {{"goodput", "%"},
       [](const auto& row) { return cells::percent(row.share(), 2); },
       "share of wall time that becomes kept progress: t / (exp(read / M) (M + restart) (exp((t + write) / "
       "M) - 1)), t Daly's interval: the mean over exponential times between failures, which also strike "
       "while a checkpoint is written or read (Bougeret et al., SC 2011)."},
      {kept("samples/s"),
       [](const auto& row) {
         return cells::unless_said(row.speed.is_of_tokens(),
                                   cells::number(row.share() * row.speed.samples_per_s));
       },
       kKept},
      {kept("tokens/s"), [](const auto& row) { return cells::number(row.share() * row.speed.tokens_per_s); },
       kKept}};
}

// The price of 10^9 tokens, or of as many samples where a sample has no tokens.
ColumnsOf<GoodputRow> price_columns(double price_per_gpu_hour) {
  ColumnsOf<GoodputRow> columns;
  for (const bool of_tokens : {false, true}) {
    // The hours are those of kept throughput, so time that failures waste costs money and energy, too.
    const auto rank_hours = [of_tokens](const GoodputRow& row) {
      return row.speed.rank_hours(
          kMany, row.share() * (of_tokens ? row.speed.tokens_per_s : row.speed.samples_per_s));
    };
    const auto add = [&](const char* name, const char* unit, auto per_rank_hour, const char* definition) {
      columns.push_back({{.name = name,
                          .unit = unit,
                          .group = of_tokens ? "10^9 tokens" : "10^9 samples",
                          .is_optional = true},
                         [=](const GoodputRow& row) {
                           return cells::unless_said(!of_tokens && row.speed.is_of_tokens(),
                                                     cells::number(per_rank_hour(row) * rank_hours(row)));
                         },
                         definition});
    };
    add(
        "cost", "", [=](const GoodputRow&) { return price_per_gpu_hour; },
        "price x ranks x 10^9 / kept throughput / 3600, in the price's currency; a rank holds one GPU.");
    add(
        "energy", "kWh", [](const GoodputRow& row) { return row.watts / 1000; },
        "power x ranks x 10^9 / kept throughput / 3600: watts of --failures, or what the GPUs' counters "
        "measured over "
        "steps "
        "(of predictions: median over the measured points of the family); as if a rank took as much while it "
        "restarts.");
  }
  return columns;
}

std::string failures_text(const FailureQuery& query) {
  const PublishedFailures* published = published_failures(query.per_node_hour);
  return fmt::format("Failures: {} for each node and hour{}; {} to restart.",
                     format_number(query.per_node_hour, 3),
                     published == nullptr ? "" : fmt::format(", as {}", published->source),
                     query.restart_s > 0 ? format_seconds(query.restart_s) : "no time");
}

}  // namespace

GoodputRows::GoodputRows(const std::vector<StudyData>& studies, const FailureQuery& query) : query_(query) {
  // Collects the times of all checkpoints that were timed, whatever became of the run or point: a run that
  // failed later, or that still goes on, has written real checkpoints. Times of different folders stay
  // apart, because folders may lie on different file systems.
  for (const StudyData& study : studies) {
    const std::string machine = machine_text(study.environment);
    const auto add = [&](const Record& record) {
      if (record.point.workload != "train" && !writes_as_train(record.point.training.save)) return;
      const OptionValue* const folder = record.point.training.save.options.find("folder");
      Times& times = measured_[state_key(machine, record.point.training)]
                              [folder == nullptr ? "" : folder->get<std::string>()];
      append_series(times.write_s, record, "checkpoint_write");
      append_series(times.read_s, record, "checkpoint_read");
    };
    for (const Record& record : study.records) add(record);
    if (study.under_way) add(*study.under_way);
  }
}

// Compares folders by their median write. A folder into which no write was timed comes last, so it is
// chosen only if no folder has one.
GoodputRows::Times GoodputRows::slowest(const std::map<std::string, Times>& by_folder) {
  const auto write_s = [](const auto& entry) {
    return entry.second.write_s.empty() ? -1.0 : median(entry.second.write_s);
  };
  return std::max_element(by_folder.begin(), by_folder.end(),
                          [&](const auto& a, const auto& b) { return write_s(a) < write_s(b); })
      ->second;
}

void GoodputRows::add(const MergedPoint& like, const Point& point, int64_t nodes, const Throughput& speed,
                      double watts) {
  any_added_ = true;
  // A failure of any node stops the whole job, so the job fails as many times as often as it has nodes. If
  // the number of nodes is not known, all that follows from it is NaN.
  const double between_s = 3600 / (query_.per_node_hour * static_cast<double>(nodes > 0 ? nodes : NAN));
  GoodputRow row{&like,
                 point,
                 nodes,
                 speed,
                 std::isnan(query_.watts) ? watts : query_.watts,
                 {between_s, query_.write_s, query_.read_s, query_.restart_s}};
  const Measures& own = like.measures;
  // Three cases. A predicted point (it only resembles `like`), or a measured one without checkpoints of its
  // own, takes the times of whole checkpoints of the same state. A measured point that wrote its files to
  // the disk has its own times; training stops for the stall, which is the whole write unless that is
  // asynchronous. A measured point that did not wait for the disk (sync false) has shown no time that can
  // be relied on, so it has a row only if the user gave the time to write.
  const bool measured_itself = &like.point == &point && !std::isnan(own.checkpoint_write_s);
  Times times;
  if (!measured_itself) {
    if (const auto found = measured_.find(state_key(like.machine, point.training)); found != measured_.end())
      times = slowest(found->second);
  } else if (save_is(point.training.save, "sync", true)) {
    times = {{std::max(own.checkpoint_stall_s, 0.0)}, {own.checkpoint_read_s}};
    if (std::isnan(query_.write_s) && save_is(point.training.save, "async", true)) {
      // An asynchronous write goes on beside the steps. The next one cannot begin before it has ended. A
      // failure during the write falls back to the checkpoint before, so it also loses the steps that ran
      // beside the write; this loss is added to the time to restart.
      row.least_interval_s = own.checkpoint_write_s;
      row.job.restart_s += own.checkpoint_write_s - times.write_s.front();
    }
  }
  row.job.write_s = given_or_measured(query_.write_s, times.write_s);
  row.job.read_s = given_or_measured(query_.read_s, times.read_s);
  if (std::isnan(row.job.write_s)) return;
  if (std::isnan(row.job.read_s)) row.job.read_s = 0;
  rows_.push_back(row);
}

std::vector<GoodputRow> GoodputRows::rows() const {
  if (!rows_.empty()) return rows_;
  if (!any_added_)
    throw UsageError(
        "--failures says what failures leave of training, and these studies hold no training point with a "
        "result; leave it out, or add the study of a suite that trains or of a run of `train`");
  throw UsageError(
      "--failures: the studies do not say how long a checkpoint takes; give checkpoint_write=TIME, or add "
      "the study of a run of `train --checkpoint`, or of points with `save`, with the same model, optimizer "
      "and precision");
}

double watts_of_rank(const MergedPoint& merged) {
  return merged.measures.energy_j / merged.measures.step_s / static_cast<double>(merged.point.ranks);
}

Table goodput_table(const std::vector<MergedPoint>& points, const std::vector<GoodputRow>& rows,
                    const FailureQuery& query, double price_per_gpu_hour) {
  const TrainingColumns labels(points);
  Table table = make_table("goodput", "Goodput: what failures leave",
                           join(via(&GoodputRow::like, labels.family()), goodput_settings(),
                                interval_columns(), kept_columns(), price_columns(price_per_gpu_hour)),
                           rows);
  if (!rows.empty()) table.notes = {failures_text(query)};
  return table;
}

}  // namespace shardmark
