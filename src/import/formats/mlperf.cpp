// Reads MLPerf training logs: lines ":::MLLOG {json}". Steps are not logged one by one, so the step time is
// that of a block, the training between two evaluations: the time from block_start to block_stop divided by
// the number of steps in it (samples_count / global_batch_size). Some submitters also log a line ":::SYSJSON
// {json}" that describes the machine. Source: github.com/mlcommons/logging,
// mlperf_logging/mllog/constants.py; results of training v4.0 and v5.1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/stats.h"
#include "base/utc.h"
#include "import/collective_record.h"
#include "import/lines.h"

namespace shardmark::imports::mlperf {
namespace {

using MlJson = nlohmann::ordered_json;

constexpr std::string_view kEvent = ":::MLLOG ", kSystem = ":::SYSJSON ";

double number_of(const MlJson& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() || !found->is_number() ? Measures::kNone : found->get<double>();
}

std::string word_of(const MlJson& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

// Also accepts a number that is written as text.
int64_t count_of(const MlJson& json, const char* key) {
  constexpr double kMost = 1 << 30;
  const std::string word = word_of(json, key);
  const double count = word.empty() ? number_of(json, key) : number_in(word);
  return count > 0 ? std::llround(std::min(count, kMost)) : 0;
}

class MlPerfReader {
 public:
  MlPerfReader(const Source& source, const Given& given) : source_(source), given_(given), damaged_(source) {}

  Contents read() {
    said_.times = "median over blocks of the mean step of a block";
    for_each_line(source_, [this](const Line& line) {
      last_line_ = line.number;
      if (const size_t at = line.text.find(kEvent); at != std::string_view::npos)
        take(line, line.text.substr(at + kEvent.size()));
      else if (const size_t system = line.text.find(kSystem); system != std::string_view::npos)
        take_system(line.text.substr(system + kSystem.size()));
    });
    if (runs_) end_cut_run(last_line_);
    damaged_.report(said_.warnings);
    return std::move(said_);
  }

 private:
  void take_system(std::string_view text) {
    const MlJson system = MlJson::parse(text, nullptr, false);
    if (!system.is_object()) return;
    latest_.nodes = count_of(system, "number_of_nodes");
    latest_.ranks = latest_.nodes * count_of(system, "accelerators_per_node");
    if (run_.ranks == 0) run_.nodes = latest_.nodes, run_.ranks = latest_.ranks;
    if (const std::string device = word_of(system, "accelerator_model_name"); !device.empty())
      said_.devices = {device};
  }

  // A run or a block that begins inside another one says that the end of the former is missing: the run ends
  // there, and the block is left out. The end of what has not begun counts as nothing. The value of each key
  // is also kept as a fact, for the words and numbers that describe the run. Most stand before its run_start,
  // so that within a run a second value is that of the next one.
  void take(const Line& line, std::string_view text) {
    const MlJson event = MlJson::parse(text, nullptr, false);
    const double time_ms = number_of(event, "time_ms");
    if (!event.is_object() || !event.contains("key") || !event["key"].is_string() || std::isnan(time_ms))
      return damaged_.add(line, "no event of an MLPerf log");
    const MlJson value = event.value("value", MlJson()), about = event.value("metadata", MlJson::object());
    const std::string key = event["key"];
    if (key == "run_start") {
      if (runs_) end_cut_run(line.number);
      begin_run(time_ms, line);
    }
    if (key == "block_start") {
      if (in_block_) damaged_.add(line, "a block that begins inside another");
      begin_block(time_ms, number_of(about, "samples_count"), line);
    }
    if (key == "block_stop" && in_block_) end_block(time_ms, number_of(about, "samples_count"), line);
    if (key == "tracked_stats") throughput_ = number_of(value, "throughput");
    if (key == "train_loss" && value.is_number()) losses_.push_back(value.get<double>());
    if (key == "run_stop" && runs_) end_run(word_of(about, "status"));
    if (!value.is_primitive() || value.is_null()) return;
    latest_.facts[key] = value;
    if (!runs_ || !run_.facts.contains(key)) run_.facts[key] = value;
  }

  void begin_run(double time_ms, const Line& line) {
    runs_ = true;
    run_line_ = line.number;
    started_s_ = time_ms / 1e3;
    run_ = latest_;
    throughput_ = Measures::kNone;
    samples_ = 0;
    trained_s_ = 0;
    steps_s_.clear();
    losses_.clear();
  }

  void begin_block(double time_ms, double samples, const Line& line) {
    block_ms_ = time_ms;
    block_samples_ = samples;
    in_block_ = runs_;
    if (runs_ && std::isnan(samples))
      throw UsageError(place(source_, line.number) +
                       "a block that does not say samples_count, so that the time of a step is not known; "
                       "leave the file out");
  }

  void end_block(double time_ms, double samples, const Line& line) {
    in_block_ = false;
    const double count = samples - block_samples_, seconds = (time_ms - block_ms_) / 1e3;
    if (!(count > 0 && seconds > 0)) return damaged_.add(line, "a block without samples or time");
    constexpr double kOtherThings = 1.5;  // a throughput may leave out a first step
    // If the log has a throughput of its own, it must agree with the samples and the time of the block. It
    // does not if the submitter counts tokens. Without a throughput the ratio is NaN, and the comparison is
    // false.
    const double ratio = throughput_ * seconds / count;
    if (std::max(ratio, 1 / ratio) > kOtherThings)
      throw UsageError(fmt::format(
          "{}{:.6g} samples in {:.6g} s are {:.6g} per second, but its throughput is {:.6g}: does it "
          "count tokens?",
          place(source_, line.number), count, seconds, count / seconds, throughput_));
    throughput_ = Measures::kNone;
    samples_ += count;
    trained_s_ += seconds;
    steps_s_.push_back(seconds * static_cast<double>(need("global_batch_size")) / count);
  }

  int64_t need(const char* key) const {
    const int64_t count = count_of(run_.facts, key);
    if (count < 1) throw UsageError(fmt::format("{}: it does not say {}", source_.name, key));
    return count;
  }

  void end_cut_run(int64_t at_line) {
    said_.warnings.push_back(
        fmt::format("{}ends before its run does (no run_stop): {} whole blocks are imported",
                    place(source_, at_line), steps_s_.size()));
    end_run("");
  }

  void end_run(const std::string& status) {
    runs_ = in_block_ = false;
    if (steps_s_.empty()) return;
    Record record;
    record.point = unspecified_point("training", ranks_of(run_.ranks, given_, source_.name + ": "));
    record.started = utc_text(static_cast<std::time_t>(started_s_));
    record.point.training.model = choice_or_name(word_of(run_.facts, "submission_benchmark"));
    record.point.training.optimizer = choice_or_name(word_of(run_.facts, "opt_name"));
    set_batch(record.point);
    Measures& m = record.measures;
    m.step_s = median(steps_s_);
    const Interval interval = median_interval(steps_s_);
    m.step_low_s = interval.low;
    m.step_high_s = interval.high;
    m.samples_per_s = samples_ / trained_s_;
    m.num_steps = std::llround(samples_ / static_cast<double>(need("global_batch_size")));
    if (!losses_.empty()) m.loss_first = losses_.front(), m.loss_last = losses_.back();
    m.verified = "unverified: imported";
    if (!status.empty() && status != "success") record.reason = "the run ended as " + status;
    said_.measured.push_back({std::move(record), run_line_, run_.nodes, ""});
    steps_s_.clear();
    for (const char* key : {"submission_org", "submission_platform", "submission_division", "seed"})
      if (run_.facts.contains(key))
        said_.facts[key] =
            run_.facts[key].is_string() ? run_.facts[key].get<std::string>() : run_.facts[key].dump();
  }

  // The log does not say which ranks share a copy of the model. So the batch size is a rank's share of all
  // samples of a step.
  void set_batch(Point& point) {
    const int64_t batch = need("global_batch_size");
    const int64_t micro_batches = std::max<int64_t>(count_of(run_.facts, "gradient_accumulation_steps"), 1);
    if (batch % point.ranks != 0)
      throw UsageError(fmt::format(
          "{}: a global batch of {} is no whole number of samples for each of {} ranks: ranks share "
          "copies of the model, in a way that the log does not say",
          source_.name, batch, point.ranks));
    const bool divides = batch % (point.ranks * micro_batches) == 0;
    point.training.accumulation = divides ? micro_batches : 1;
    point.training.batch_size = batch / point.ranks / point.training.accumulation;
    if (!divides)
      said_.warnings.push_back(
          fmt::format("{}: {} micro-batches do not divide {} samples over {} ranks: a rank's share of a step "
                      "is taken as one micro-batch",
                      source_.name, micro_batches, batch, point.ranks));
  }

  const Source& source_;
  const Given& given_;
  LeftOut damaged_;
  Contents said_;
  // What the log says of a run and its machine: the value of each key. run_: of the run that is open, or of
  // the last one; latest_: what was said last.
  struct Said {
    MlJson facts = MlJson::object();
    int64_t nodes = 0, ranks = 0;
  };
  Said run_, latest_;
  bool runs_ = false, in_block_ = false;
  int64_t last_line_ = 0, run_line_ = 0;
  double started_s_ = 0, block_ms_ = 0, block_samples_ = 0, throughput_ = Measures::kNone, samples_ = 0,
         trained_s_ = 0;
  std::vector<double> steps_s_, losses_;
};

bool is_mlperf(const std::string& text) { return text.find(kEvent) != std::string::npos; }

Contents read_mlperf(const Source& source, const Given& given) { return MlPerfReader(source, given).read(); }

const Registration<Format> registered{"mlperf",
                                      {"MLPerf training logs (:::MLLOG lines)", {}, is_mlperf, read_mlperf}};

}  // namespace
}  // namespace shardmark::imports::mlperf
