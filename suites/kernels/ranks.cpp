// Benchmarks what rank 0 does for all ranks of a job with 1,000 and 10,000 ranks: the plan of a point, its
// statistics, writing it to disk, and the diagnosis of a hang. The ranks are invented, and nothing is sent.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "comm/watch/diagnosis.h"
#include "plan/plan.h"
#include "schema/step_statistics.h"
#include "schema/study.h"
#include "strategies/choice_kinds.h"
#include "sweep/workloads/training_results.h"

namespace shardmark {
namespace {

constexpr int64_t kSteps = 300, kWindows = 10;

Point point_of(int64_t ranks, const char* strategy) {
  Point point;
  point.workload = "training";
  point.ranks = ranks;
  TrainingPoint& t = point.training;
  const auto resolved = [](const char* text, const char* kind) {
    const Choice choice = choice_from_text(text);
    return resolve(choice, known_options(kind, choice), kind);
  };
  t.model = resolved("gpt2", "model");
  t.data = resolved("synthetic", "data");
  t.strategy = resolved(strategy, "strategy");
  t.optimizer = resolved("adamw", "optimizer");
  t.batch_size = 4;
  return point;
}

Record record_of(int64_t ranks) {
  Record record;
  record.point = point_of(ranks, "fsdp");
  record.id = point_id(record.point);
  for (const char* name : {"step", "data", "forward", "backward", "exposed", "optimizer", "window"}) {
    const int64_t columns = std::strcmp(name, "window") == 0 ? kWindows : kSteps;
    Series series{name, ranks, columns, {}};
    series.values.resize(static_cast<size_t>(ranks * columns));
    uint64_t state = 1;  // noise that HDF5 cannot compress
    for (double& value : series.values)
      value = 0.1 + 1e-12 * static_cast<double>((state = state * 6364136223846793005 + 1) >> 40);
    record.samples.push_back(std::move(series));
  }
  return record;
}

double mebibytes_of(const Record& record) {
  double bytes = 0;
  for (const Series& series : record.samples) bytes += 8 * static_cast<double>(series.values.size());
  return bytes / (1 << 20);
}

void report_memory(benchmark::State& state) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB_so_far"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void plan_of(benchmark::State& state, const char* strategy) {
  const Point point = point_of(state.range(0), strategy);
  for (auto _ : state) benchmark::DoNotOptimize(expect(point));
}

void statistics(benchmark::State& state) {
  Record record = record_of(state.range(0));
  const auto table = specs::model_table(record.point.training.model);
  const Resources resources;
  for (auto _ : state) {
    summarize(record);
    derive_training(record, *table, resources);
  }
  state.counters["samples_MiB"] = mebibytes_of(record);
  report_memory(state);
}

// A study of one point, in a folder that is deleted with this object.
struct Stored {
  explicit Stored(int64_t ranks) : record(record_of(ranks)) { std::filesystem::create_directories(folder); }
  ~Stored() { std::filesystem::remove_all(folder); }
  std::string write() {
    std::string path = folder / (std::to_string(count++) + ".h5");
    Study study = Study::create(path, {});
    study.begin(record);
    study.append(record);
    return path;
  }
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shardmark-kernels-" + std::to_string(::getpid()));
  Record record;
  int count = 0;
};

void journal(benchmark::State& state) {
  Stored stored(state.range(0));
  for (auto _ : state) {
    const std::string path = stored.write();
    state.PauseTiming();
    for (const char* ending : {".journal", ".samples"}) std::filesystem::remove(path + ending);
    state.ResumeTiming();
  }
  state.counters["samples_MiB"] = mebibytes_of(stored.record);
  report_memory(state);
}

void publish(benchmark::State& state) {
  Stored stored(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    const std::string path = stored.write();
    Study study = Study::resume(path, {});
    state.ResumeTiming();
    study.publish();
    state.PauseTiming();
    state.counters["file_MiB"] = static_cast<double>(std::filesystem::file_size(path)) / (1 << 20);
    std::filesystem::remove(path);
    state.ResumeTiming();
  }
  report_memory(state);
}

void read(benchmark::State& state) {
  Stored stored(state.range(0));
  const std::string path = stored.write();
  Study::resume(path, {}).publish();
  for (auto _ : state) benchmark::DoNotOptimize(read_study(path));
  report_memory(state);
}

// There are 8 ranks per node. One rank is stuck in backward, and all others wait for its all-reduce.
void diagnosis(benchmark::State& state) {
  const int64_t ranks = state.range(0);
  std::vector<std::string> hosts;
  std::vector<int> first;
  std::vector<RankState> states;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    hosts.push_back("node" + std::to_string(rank / 8));
    first.push_back(static_cast<int>(rank / 8 * 8));
    RankState one;
    one.rank = rank;
    one.heard = one.answers = true;
    one.process = 'S';
    one.beat_age_s = 600;
    std::strcpy(one.point, "fsdp, gpt2");
    std::strcpy(one.stage, "backward");
    one.num_points = 3, one.num_stages = 7, one.step = 11, one.block = 5;
    one.meets = rank != ranks / 2;
    states.push_back(one);
  }
  const NodeMap nodes = make_node_map(hosts, first);
  for (auto _ : state) benchmark::DoNotOptimize(explain(states, nodes));
  state.counters["states_MiB"] = static_cast<double>(states.size() * sizeof(RankState)) / (1 << 20);
}

void at_scale(benchmark::internal::Benchmark* of) {
  of->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan_of, ddp, "ddp")->Apply(at_scale);
BENCHMARK_CAPTURE(plan_of, fsdp, "fsdp")->Apply(at_scale);
BENCHMARK_CAPTURE(plan_of, zero3, "zero3")->Apply(at_scale);
BENCHMARK(statistics)->Apply(at_scale);
BENCHMARK(journal)->Apply(at_scale);
BENCHMARK(publish)->Apply(at_scale);
BENCHMARK(read)->Apply(at_scale);
BENCHMARK(diagnosis)->Apply(at_scale);

}  // namespace
}  // namespace shardmark
