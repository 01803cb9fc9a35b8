// What nccl-tests write with -J (2.17.4 and later). Of each process it lists one device, whatever number of
// GPUs the process has. With -I 1 (2.19.2) it holds the time of every iteration, which become the samples of
// a record.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "import/formats/nccl.h"
#include "import/lines.h"
#include "schema/step_statistics.h"

namespace shardmark::imports {
namespace {

using Json = nlohmann::ordered_json;

// nccl-tests write one line: a place in it is the byte. A file that was cut is whole up to the last result
// that is.
std::pair<Json, std::optional<size_t>> parse_whole_or_cut(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return {std::move(json), std::nullopt};
  const size_t results = text.find("\"results\":[");
  for (size_t end = text.rfind("},{\"size\"");
       end != std::string::npos && results != std::string::npos && end > results;
       end = end == 0 ? std::string::npos : text.rfind("},{\"size\"", end - 1)) {
    json = Json::parse(text.substr(0, end + 1) + "]}", nullptr, false);
    if (!json.is_discarded()) return {std::move(json), text.size()};
  }
  return {Json(), text.size()};
}

int64_t whole_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number_integer() ? 0 : found->get<int64_t>();
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

// %lf has six decimals. A NaN where it is no number: nccl-tests write "nan".
Printed decimal(const Json& object, const char* key) {
  const auto found = object.find(key);
  return {found == object.end() || !found->is_number() ? Measures::kNone : found->get<double>(), 0.5e-6};
}

void read_devices(const Json& config, Contents& said, NcclRun& run) {
  constexpr int64_t kMostOfProcess = 1 << 10;
  const auto of_process = [&](const char* key) {
    return std::clamp<int64_t>(whole_of(config, key), 1, kMostOfProcess);
  };
  const int64_t per_process = of_process("nthreads") * of_process("ngpus");
  for (const Json& device : config.value("devices", Json::array())) {
    said.devices.insert(said.devices.end(), static_cast<size_t>(per_process), text_in(device, "device_info"));
    said.rank_nodes.insert(said.rank_nodes.end(), static_cast<size_t>(per_process),
                           text_in(device, "hostname"));
  }
  run.num_steps = whole_of(config, "iterations");
  run.num_warmup = whole_of(config, "warmup_iters");
  run.nodes = static_cast<int64_t>(std::set(said.rank_nodes.begin(), said.rank_nodes.end()).size());
}

void read_environment(const Json& json, Contents& said) {
  said.version = std::to_string(whole_of(json, "version"));
  if (const std::string nccl = nccl_version(whole_of(json, "nccl_version")); !nccl.empty())
    said.versions["nccl"] = nccl;
  for (const Json& variable : json.value("env", Json::array())) {
    const std::string text = variable.is_string() ? variable.get<std::string>() : "";
    const size_t equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != std::string::npos)
      said.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

// Every iteration, on the slowest process: the step time is their median then.
void add_samples(const Json& result, const char* place, Record& record) {
  const auto iterations = result.find(std::string(place) + "_per_iter");
  if (iterations == result.end() || !iterations->is_object()) return;
  const Json times = iterations->value("times_us", Json::array());
  const size_t skipped =
      static_cast<size_t>(std::max<int64_t>(whole_of(*iterations, "skipped_iterations"), 0));
  Series steps{"step", 1, 0, {}};
  for (size_t i = skipped; i < times.size(); ++i)
    if (times[i].is_number()) steps.values.push_back(times[i].get<double>() * 1e-6);
  steps.columns = std::ssize(steps.values);
  Measures& m = record.measures;
  const double mean_s = m.step_s;
  record.samples = {std::move(steps)};
  summarize(record);
  m.algbw_gb_s *= mean_s / m.step_s;  // of the median, as the study's own
  m.busbw_gb_s *= mean_s / m.step_s;
}

void add_place(const Json& result, const char* key, const NcclRun& run, const Source& source, int64_t number,
               Contents& said) {
  const auto found = result.find(key);
  if (found == result.end() || !found->is_object()) return;
  const std::string where = fmt::format("{}: result {}: ", source.name, number);
  if (found->contains("cpu_time"))
    throw UsageError(where + "its times are of the CPU alone (-C), which a study cannot hold");
  const Printed wrong = decimal(*found, "nwrong");
  const std::string redop = text_in(result, "redop");
  const NcclResult measured{whole_of(result, "size"),
                            text_in(result, "type"),
                            redop,
                            std::string_view(key) == "in_place",
                            decimal(*found, "time"),
                            decimal(*found, "alg_bw"),
                            decimal(*found, "bus_bw"),
                            count_of_wrong(wrong.value)};
  if (measured.bytes <= 0) return;
  if (const std::string why = damage(measured); !why.empty()) {
    said.warnings.push_back(fmt::format("{}left out: {}", where, why));
    return;
  }
  require_factor(measured, run, where);
  said.measured.push_back({nccl_record(measured, run), number, run.nodes, ""});
  add_samples(result, key, said.measured.back().record);
}

bool is_nccl_json(const std::string& text) {
  return text.starts_with("{") && text.find("\"results\"") != std::string::npos &&
         text.find("\"bus_bw\"") != std::string::npos;
}

Contents read_nccl_json(const Source& source, const Given& given) {
  const auto [json, cut_at] = parse_whole_or_cut(source.text);
  if (!json.is_object()) throw UsageError(source.name + ": no JSON of nccl-tests, nor the begin of one");
  Contents said;
  NcclRun run;
  said.transport = "nccl";
  read_environment(json, said);
  read_devices(json.value("config", Json::object()), said, run);
  said.times = kNcclTimes;
  const Json arguments = json.value("args", Json::array());
  const std::string where = source.name + ": ";
  run.operation = &nccl_operation(
      !arguments.empty() && arguments.front().is_string() ? arguments.front().get<std::string>() : "", given,
      where);
  run.ranks = ranks_of(static_cast<int64_t>(said.rank_nodes.size()), given, where);
  int64_t number = 0;
  for (const Json& result : json.value("results", Json::array())) {
    ++number;
    if (!result.is_object()) continue;
    for (const char* key : {"out_of_place", "in_place"}) add_place(result, key, run, source, number, said);
  }
  if (cut_at)
    said.warnings.push_back(fmt::format("{}: ends inside its results, at byte {}: {} of them are imported",
                                        source.name, *cut_at, said.measured.size()));
  return said;
}

const Registration<Format> registered{"nccl-tests-json",
                                      {"what nccl-tests write with -J", is_nccl_json, read_nccl_json}};

}  // namespace
}  // namespace shardmark::imports
