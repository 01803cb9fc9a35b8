// Reads what nccl-tests write with -J (2.17.4 and later). The file lists one device of each process, whatever
// number of GPUs the process has. With -I 1 (2.19.2) it contains the time of every iteration; these become
// the samples of a record.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"
#include "import/formats/nccl.h"
#include "import/formats/nccl_ranks.h"
#include "import/lines.h"
#include "schema/step_statistics.h"

namespace shardmark::imports::nccl_json {
namespace {

using Json = nlohmann::ordered_json;

// One JSON document of a file. A file may contain several, because people append them to each other.
// nccl-tests write each in one line, so error messages give the byte. If a document was cut or damaged, its
// results up to there are used.
struct Document {
  Json json;
  std::optional<size_t> damaged_at;
};

// The length of the object that the text begins with; npos if it does not end.
size_t object_length(std::string_view text) {
  int64_t depth = 0;
  bool is_quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quoted && c == '\\')
      ++at;
    else if (c == '"')
      is_quoted = !is_quoted;
    else if (!is_quoted && (c == '{' || c == '['))
      ++depth;
    else if (!is_quoted && (c == '}' || c == ']') && --depth == 0)
      return at + 1;
  }
  return std::string_view::npos;
}

// A document that was cut or damaged is mended: everything behind the last result that is whole is dropped,
// and the list of results and the document are closed. One result ends and the next one begins where the
// text has },{"size". If it has no such place before the damage, the document is no object, and read()
// refuses it.
Document parse_document(std::string_view text) {
  try {
    return {Json::parse(text), std::nullopt};
  } catch (const Json::parse_error& error) {
    const size_t end = text.substr(0, error.byte).rfind("},{\"size\"");
    const std::string whole =
        end == std::string_view::npos ? "" : std::string(text.substr(0, end + 1)) + "]}";
    return {Json::parse(whole, nullptr, /*allow_exceptions=*/false), std::min(error.byte, text.size())};
  }
}

int64_t whole_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number_integer() ? 0 : found->get<int64_t>();
}

// Returns null if the key is missing; a loop over null does nothing.
const Json& part_of(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

// Numbers printed with %lf have six decimals. Returns NaN if the value is not a number, because nccl-tests
// write "nan".
Printed decimal(const Json& object, const char* key) {
  const auto found = object.find(key);
  return {found == object.end() || !found->is_number() ? Measures::kNone : found->get<double>(), 0.5e-6};
}

void read_config(const Json& config, const Given& given, const std::string& where, Contents& said,
                 NcclRun& run) {
  constexpr int64_t kMostOfProcess = 1 << 10;
  const auto of_process = [&](const char* key) {
    return std::clamp<int64_t>(whole_of(config, key), 1, kMostOfProcess);
  };
  const int64_t per_process = of_process("nthreads") * of_process("ngpus");
  std::vector<NcclRank> listed;
  for (const Json& device : part_of(config, "devices")) {
    NcclRank& one = listed.emplace_back();
    one.rank = whole_of(device, "rank");
    one.group = whole_of(device, "group");
    one.host = text_in(device, "hostname");
    one.device = std::to_string(whole_of(device, "device"));
    one.bus = text_in(device, "device_hex");
    one.name = text_in(device, "device_info");
    one.place = where;
  }
  NcclPlacement placement = nccl_placement(std::move(listed), given, per_process);
  run.ranks = ranks_of(std::ssize(placement.hosts), given, where);
  run.nodes = placement.nodes;
  run.shares_devices = placement.shares_devices;
  run.num_steps = whole_of(config, "iterations");
  run.num_warmup = whole_of(config, "warmup_iters");
  run.aggregated = std::max<int64_t>(whole_of(config, "aggregated_iterations"), 1);
  run.graph = whole_of(config, "graph");
  if (text_in(config, "blocking_collectives") == "true") run.blocking = "waits after each operation";
  if (placement.hosts.size() > said.rank_nodes.size()) {
    said.rank_nodes = std::move(placement.hosts);
    said.devices = std::move(placement.devices);
  }
}

void read_environment(const Json& json, Contents& said) {
  said.version = std::to_string(whole_of(json, "version"));
  if (const std::string nccl = nccl_version(whole_of(json, "nccl_version")); !nccl.empty())
    said.versions["nccl"] = nccl;
  for (const Json& variable : part_of(json, "env")) {
    const std::string text = variable.is_string() ? variable.get<std::string>() : "";
    const size_t equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != std::string::npos)
      said.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

// The value that the command line gives for a flag; 0 if it does not.
int64_t number_after(const Json& arguments, std::string_view flag, std::string_view long_flag) {
  bool is_next = false;
  for (const Json& argument : arguments) {
    const std::string text = argument.is_string() ? argument.get<std::string>() : "";
    if (is_next) return std::max<int64_t>(whole_in(text), 0);
    is_next = text == flag || text == long_flag;
  }
  return 0;
}

// Takes over the time of every iteration on the slowest process. The step time then becomes their median.
void add_samples(const Json& result, const char* place, Record& record) {
  const auto iterations = result.find(std::string(place) + "_per_iter");
  if (iterations == result.end() || !iterations->is_object()) return;
  const Json& times = part_of(*iterations, "times_us");
  if (!times.is_array()) return;
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
  m.algbw_gb_s *= mean_s / m.step_s;  // for the median, as in our own studies
  m.busbw_gb_s *= mean_s / m.step_s;
}

class JsonReader {
 public:
  JsonReader(const Source& source, const Given& given) : source_(source), given_(given), damaged_(source) {}

  // Reads one document after the other. All their trees together would take ten times the file's size.
  Contents read() {
    const std::string_view text = source_.text;
    const auto begin_at = [&](size_t at) {
      return std::min(text.find_first_not_of(" \t\n", at), text.size());
    };
    int64_t number = 0;
    for (size_t begin = begin_at(0), next = 0; begin < text.size(); begin = next) {
      const std::string_view rest = text.substr(begin);
      const size_t length = std::min(object_length(rest), rest.size());
      next = begin_at(begin + length);
      Document document = parse_document(rest.substr(0, length));
      if (document.damaged_at) *document.damaged_at += begin;
      if (!document.json.is_object())
        throw UsageError(
            fmt::format("{}: what begins at byte {} is no JSON of nccl-tests, or no result of it is whole",
                        source_.name, begin));
      const bool is_only = ++number == 1 && next == text.size();
      read(document, source_.name + (is_only ? ": " : fmt::format(": document {}: ", number)));
    }
    damaged_.report(said_.warnings);
    return std::move(said_);
  }

 private:
  void read(const Document& document, const std::string& where) {
    const Json& json = document.json;
    run_ = {};
    read_environment(json, said_);
    read_config(part_of(json, "config"), given_, where, said_, run_);
    const Json& arguments = part_of(json, "args");
    const bool is_named = arguments.is_array() && !arguments.empty() && arguments.front().is_string();
    run_.unaligned = number_after(arguments, "-u", "--unalign");
    run_.operation =
        &nccl_operation(is_named ? nccl_test_in(arguments.front().get<std::string>()) : "", given_, where);
    add_kind(run_, where, said_);
    const size_t before = said_.measured.size();
    int64_t number = 0;
    for (const Json& result : part_of(json, "results")) {
      ++number;
      add_result(result, number, fmt::format("{}result {}: ", where, number));
    }
    if (document.damaged_at)
      said_.warnings.push_back(
          fmt::format("{}ends inside its results, or is damaged, at byte {}: {} of them are "
                      "imported",
                      where, *document.damaged_at, said_.measured.size() - before));
  }

  void add_result(const Json& result, int64_t number, const std::string& where) {
    if (!result.is_object()) return damaged_.add_at(where, "it is no object");
    const auto size = result.find("size");
    if (size == result.end() || !size->is_number_integer() || *size < 0 || *size > values::kMessage.most)
      return damaged_.add_at(where, fmt::format("its size is no number of bytes that a run has: {}",
                                                size == result.end() ? "none" : quoted_line(size->dump())));
    if (*size == 0) return;  // without a message
    for (const char* key : {"out_of_place", "in_place"}) add_place(result, key, number, where);
  }

  void add_place(const Json& result, const char* key, int64_t number, const std::string& where) {
    const auto found = result.find(key);
    if (found == result.end() || found->is_null()) return;  // a replayed trace has only in-place results
    if (!found->is_object()) return damaged_.add_at(where, fmt::format("its {} is no object", key));
    if (found->contains("cpu_time"))
      throw UsageError(where + "its times are of the CPU alone (-C), which a study cannot hold");
    const Printed wrong = decimal(*found, "nwrong");
    const NcclResult measured{whole_of(result, "size"),  text_in(result, "type"),
                              text_in(result, "redop"),  std::string_view(key) == "in_place",
                              decimal(*found, "time"),   decimal(*found, "alg_bw"),
                              decimal(*found, "bus_bw"), count_of_wrong(wrong.value)};
    if (const std::string why = damage(measured); !why.empty()) return damaged_.add_at(where, why);
    require_factor(measured, run_, where);
    said_.measured.push_back({nccl_record(measured, run_), number, run_.nodes, ""});
    require_few(std::ssize(said_.measured), source_);
    add_samples(result, key, said_.measured.back().record);
  }

  const Source& source_;
  const Given& given_;
  LeftOut damaged_;
  Contents said_;
  NcclRun run_;
};

bool is_nccl_json(const std::string& text) {
  return text.starts_with("{") && text.find("\"results\"") != std::string::npos &&
         text.find("\"bus_bw\"") != std::string::npos;
}

Contents read_nccl_json(const Source& source, const Given& given) { return JsonReader(source, given).read(); }

const Registration<Format> registered{"nccl-tests-json",
                                      {"what nccl-tests write with -J", {}, is_nccl_json, read_nccl_json}};

}  // namespace
}  // namespace shardmark::imports::nccl_json
