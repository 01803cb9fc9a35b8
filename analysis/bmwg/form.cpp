// The form of a report that section 13 of the draft describes: what studies say of the host, and what is to
// be added about the fabric.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/bmwg/tables.h"
#include "base/units.h"

namespace shardmark {
namespace {

using OfStudy = std::string (*)(const StudyData& study);

// What the studies say, each text once.
std::string said_by(const std::vector<StudyData>& studies, OfStudy say) {
  std::set<std::string> texts;
  for (const StudyData& study : studies)
    if (std::string text = say(study); !text.empty()) texts.insert(std::move(text));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// "mpi 4.1.4" of the members that have a text.
std::string named_members(const nlohmann::ordered_json& object, const std::set<std::string>& wanted = {}) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : object.items())
    if (value.is_string() && !value.get<std::string>().empty() && (wanted.empty() || wanted.contains(name)))
      texts.push_back(fmt::format("{} {}", name, value.get<std::string>()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string devices_of(const StudyData& study) {
  std::map<std::string, int> counts;
  for (const std::string& device : study.environment.devices) ++counts[device];
  std::vector<std::string> texts;
  for (const auto& [device, count] : counts) texts.push_back(fmt::format("{} x {}", count, device));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string placement_of(const StudyData& study) {
  const Environment& e = study.environment;
  return e.nodes.empty() ? ""
                         : fmt::format("{} rank{} on {} node{}", e.world_ranks, e.world_ranks == 1 ? "" : "s",
                                       e.nodes.size(), e.nodes.size() == 1 ? "" : "s");
}

std::string libraries_of(const StudyData& study) {
  const auto& versions = *study.environment.versions;
  return named_members(versions, {"mpi", "nccl", "torch", "cuda", "kernel"});
}

std::string tuning_of(const StudyData& study) { return named_members(*study.environment.variables); }

std::string warnings_of_host(const StudyData& study) {
  const auto& facts = *study.environment.facts;
  if (!facts.contains("preflight")) return "";
  std::vector<std::string> texts;
  for (const auto& finding : facts["preflight"]) texts.push_back(finding.value("text", ""));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, " "));
}

int64_t num_where(const std::vector<StudyData>& studies, bool (*holds)(const Record&)) {
  int64_t count = 0;
  for (const StudyData& study : studies)
    count += std::count_if(study.records.begin(), study.records.end(), holds);
  return count;
}

// Of the collectives the fewest iterations, and the sizes: where a study departs from the draft's.
std::string iterations_of(const std::vector<BmwgCollective>& collectives) {
  if (collectives.empty()) return "";
  auto [least, most] =
      std::minmax_element(collectives.begin(), collectives.end(),
                          [](const auto& a, const auto& b) { return a.times_s.size() < b.times_s.size(); });
  auto [small, large] =
      std::minmax_element(collectives.begin(), collectives.end(), [](const auto& a, const auto& b) {
        return a.merged->point.collective.bytes < b.merged->point.collective.bytes;
      });
  const auto size = [](const BmwgCollective& row) {
    return format_bytes(static_cast<double>(row.merged->point.collective.bytes));
  };
  return fmt::format("{} to {} iterations of a collective (draft: from 100), {} to {} (draft: 1 MB to 4 GB)",
                     least->times_s.size(), most->times_s.size(), size(*small), size(*large));
}

std::string repeats_of(const std::vector<BmwgCollective>& collectives) {
  int64_t below = 0, all = 0;
  for (const BmwgCollective& row : collectives)
    if (row.variation >= 0) ++all, below += row.variation < 0.05 ? 1 : 0;
  return all == 0 ? "" : fmt::format("CV of repeats below 5 % for {} of {} collectives", below, all);
}

}  // namespace

std::vector<BmwgFormLine> bmwg_form(const std::vector<StudyData>& studies,
                                    const std::vector<MergedPoint>& points, const BmwgQuery& query) {
  const std::vector<BmwgCollective> collectives = bmwg_collectives(points, query);
  const auto said = [&](OfStudy say) { return said_by(studies, say); };
  const std::string line_rate = query.line_bytes_per_s > 0
                                    ? format_number(8 * query.line_bytes_per_s / 1e9, 4) + " Gbit/s, as given"
                                    : "";
  const int64_t attempted = num_where(
                    studies, [](const Record& record) { return record.outcome != Outcome::skipped; }),
                included =
                    num_where(studies, [](const Record& record) { return record.outcome == Outcome::ok; });
  const std::string dut = "1 DUT", topology = "2 topology", settings = "3 DUT configuration", host = "5 host",
                    anomalies = "7 anomalies", accounts = "8 trials", alike = "10 comparability";
  std::vector<BmwgFormLine> form = {{"documents", "draft and terms", kBmwgRevision}};
  for (const char* item :
       {"switch vendor and model", "switch ASIC", "network operating system", "port speed",
        "buffer architecture", "optics and cables", "NIC vendor and model", "NIC firmware"})
    form.push_back({dut, item, ""});
  for (const char* item : {"class (2-tier Clos, 3-tier Clos, rail-optimized), tiers, hops",
                           "paths, bisection bandwidth", "cabling, rail mapping"})
    form.push_back({topology, item, ""});
  for (const char* item : {"ECN, PFC, DCQCN", "load balancing", "buffer allocation, tuning"})
    form.push_back({settings, item, ""});
  for (BmwgFormLine line : std::initializer_list<BmwgFormLine>{
           {"4 observation", "point",
            "the ranks' software, an endpoint boundary: host clocks, or events of the GPU"},
           {host, "traffic generator", "(b) accelerator cluster, 3.4.3"},
           {host, "accelerators", said(devices_of)},
           {host, "collective library",
            said([](const StudyData& study) { return study.environment.transport; })},
           {host, "versions", said(libraries_of)},
           {host, "NIC driver, BIOS", ""},
           {host, "tuning variables", said(tuning_of)},
           {"6 results", "tables", "bmwg, bmwg_collectives, bmwg_jct; raw samples by export"},
           {anomalies, "findings about the machine", said(warnings_of_host)},
           {anomalies, "departures", iterations_of(collectives)},
           {accounts, "attempted, included",
            fmt::format("{}, {}; the others, with reasons: table not_ok", attempted, included)},
           {"9 repeatability", "iterations and CV", repeats_of(collectives)},
           {alike, "accelerators N, of a node", said(placement_of)},
           {alike, "B_acc", line_rate},
           {alike, "leaf oversubscription", ""},
           {alike, "transport (RoCEv2, UET) and service", ""},
           {alike, "load balancing", ""}})
    form.push_back(std::move(line));
  return form;
}

}  // namespace shardmark
