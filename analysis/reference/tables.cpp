// Rows of what was found, in the order of the points.
#include "analysis/reference/tables.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "base/units.h"
#include "specs/link.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }
std::string date_of(const std::string& utc) { return utc.substr(0, utc.find('T')); }

// "torch 2.11.0, nccl 2.28.9, cuda 13.0": what decides how fast it is.
std::string versions_text(const Environment& environment) {
  std::string text;
  for (const char* name : {"torch", "mpi", "nccl", "cuda", "cudnn"})
    if (const std::string version = (*environment.versions).value(name, ""); !version.empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  return text;
}

// Whole, for points that differ in anything are other points.
ColumnsOf<MergedPoint> whole_point_columns() {
  return {machine_column(Starts::section), nodes_column(), {{"point", "", false}, [](const auto& merged) {
                                                              return cells::words(brief_text(merged.point));
                                                            }}};
}

auto step_column(const MergedPoint* ReferencePoint::*side) {
  return [side](const ReferencePoint& point) { return cells::milliseconds((point.*side)->measures.step_s); };
}

auto launches_column(const MergedPoint* ReferencePoint::*side) {
  return [side](const ReferencePoint& point) { return cells::count(std::ssize((point.*side)->launches)); };
}

constexpr const char* kSpeed =
    "the reference's step / this one: above 100 % this is faster. low, high: from the outer ends of both "
    "steps' 95 % intervals. Of a side with one launch they hold what varies within it, not what varies from "
    "launch to launch or from host to host.";

ColumnsOf<ReferencePoint> reference_columns() {
  return {{{"this", "ms", true, false, "step"}, step_column(&ReferencePoint::here)},
          {{"reference", "ms", true, false, "step"}, step_column(&ReferencePoint::there)},
          {{"of the reference", "%", true, false, "speed"},
           [](const auto& point) { return cells::percent(point.speed.value); },
           kSpeed},
          {{"low", "%", true, false, "speed"},
           [](const auto& point) { return cells::percent(point.speed.low); },
           kSpeed},
          {{"high", "%", true, false, "speed"},
           [](const auto& point) { return cells::percent(point.speed.high); },
           kSpeed},
          {{"this", "", true, true, "launches"}, launches_column(&ReferencePoint::here)},
          {{"reference", "", true, true, "launches"}, launches_column(&ReferencePoint::there)},
          {{"study", "", false, true},
           [](const auto& point) { return cells::words(file_name(point.study->path)); }},
          {{"started", "", false, true},
           [](const auto& point) { return cells::words(date_of(point.study->environment.started)); }},
          {{"revision", "", false, true},
           [](const auto& point) { return cells::words(point.study->environment.revision); }},
          {{"versions", "", false, true},
           [](const auto& point) { return cells::words(versions_text(point.study->environment)); }}};
}

// Left out of what people see where no row has a value, and never folded: one row is read as a row.
Column rate_column(const std::string& name, const std::string& unit = {}, bool numeric = true) {
  return {.name = name, .unit = unit, .numeric = numeric, .is_optional = true};
}

// A cell of what others published, where they did.
template <class Get>
auto published_cell(Get get) {
  return [get](const RatedOperation& rated) {
    return rated.published == nullptr ? Cell{"", nullptr} : get(rated, *rated.published);
  };
}

ColumnsOf<RatedOperation> own_rate_columns() {
  return {
      {{"device", "", false, true, "", Starts::section},
       [](const auto& rated) { return cells::words(device_of(*rated.merged)); }},
      {{"operation", "", false}, [](const auto& rated) { return cells::words(rated.operation); }},
      {{"type", "", false}, [](const auto& rated) { return cells::words(rated.type); }},
      {{"ranks", ""}, [](const auto& rated) { return cells::count(rated.ranks); }},
      {rate_column("size"),
       [](const auto& rated) {
         return rated.bytes == 0 ? Cell{"", nullptr}
                                 : cells::words(format_bytes(static_cast<double>(rated.bytes)));
       }},
      {rate_column("in place", "", false),
       [](const auto& rated) {
         return rated.bytes == 0 ? Cell{"", nullptr} : cells::yes_no(rated.merged->point.collective.in_place);
       }},
      {{"rate", ""},
       [](const auto& rated) {
         Cell cell = cells::number(rated.rate);
         if (rated.is_doubtful()) cell.text += " ?";
         return cell;
       },
       "of a matrix product before the points, the best of all starts of the ranks; of a collective its bus "
       "bandwidth. ?: its times have a warning (table problems)."},
      {{"unit", "", false},
       [](const auto& rated) { return cells::words(rated.bytes == 0 ? "TFLOP/s" : "GB/s"); }}};
}

ColumnsOf<RatedOperation> other_rate_columns() {
  return {{rate_column("data sheet"), [](const auto& rated) { return cells::number(rated.sheet); },
           "the device's dense peak; of a collective its link's rate each way."},
          {rate_column("of data sheet", "%"),
           [](const auto& rated) { return cells::percent(rated.rate / rated.sheet); },
           "rate / data sheet. An all_reduce that the switch computes may pass 100 %."},
          {rate_column("published"),
           published_cell([](const auto&, const auto& other) { return cells::number(other.rate); }),
           "as others measured it: how, when and where it was published stands beside it."},
          {rate_column("of published", "%"), published_cell([](const auto& rated, const auto& other) {
             return cells::percent(rated.rate / other.rate);
           })},
          {{"how", "", false, true},
           published_cell([](const auto&, const auto& other) { return cells::words(other.conditions); })},
          {{"date", "", false, true},
           published_cell([](const auto&, const auto& other) { return cells::words(other.date); })},
          {{"source", "", false, true},
           published_cell([](const auto&, const auto& other) { return cells::words(other.source); })}};
}

std::string devices_of(const Environment& e) {
  const std::set<std::string> names(e.devices.begin(), e.devices.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string link_name(const Environment& e) {
  const auto link = e.devices.empty() ? std::nullopt : specs::link_of_device(e.devices.front());
  return link && e.world_ranks > 1 ? link->name : "";
}

ColumnsOf<StudyData> collection_columns() {
  return {
      {{"device", "", false}, [](const auto& s) { return cells::words(devices_of(s.environment)); }},
      {{"transport", "", false, true}, [](const auto& s) { return cells::words(s.environment.transport); }},
      {{"link", "", false, true},
       [](const auto& s) { return cells::words(link_name(s.environment)); },
       "between the devices of a node, where several ranks ran and it is known."},
      {{"ranks", ""}, [](const auto& s) { return cells::count(s.environment.world_ranks); }},
      {{"nodes", ""}, [](const auto& s) { return cells::count(std::ssize(s.environment.nodes)); }},
      {{"suite", "", false},
       [](const auto& s) {
         return cells::words(std::filesystem::path(s.environment.suite_path).stem().string());
       }},
      {{"points", ""},
       [](const auto& s) { return cells::count(std::ssize(s.records)); },
       "records: each repeat of a point is one."},
      {{"started", "", false}, [](const auto& s) { return cells::words(date_of(s.environment.started)); }},
      {{"revision", "", false}, [](const auto& s) { return cells::words(s.environment.revision); }},
      {{"versions", "", false, true},
       [](const auto& s) { return cells::words(versions_text(s.environment)); }},
      {{"study", "", false}, [](const auto& s) { return cells::words(file_name(s.path)); }}};
}

}  // namespace

Table reference_table(const std::vector<ReferencePoint>& points) {
  Table table =
      make_table("reference", "Beside the reference collection",
                 join(via(&ReferencePoint::here, whole_point_columns()), reference_columns()), points);
  table.notes = {
      "Equal points on the same devices, nodes and ranks on each, on other hosts; where the collection "
      "has one several times, the one of most repeats. shardmark compare --reference tests the "
      "difference over launches."};
  return table;
}

Table rates_table(const std::vector<RatedOperation>& rates) {
  return make_table("reference.rates", "Beside data sheets and published rates",
                    join(own_rate_columns(), other_rate_columns()), rates);
}

Table collection_table(const std::vector<StudyData>& studies) {
  return make_table("collection", "The reference collection", collection_columns(), studies);
}

}  // namespace shardmark
