// Tests of nodes as JSON. Numbers that a rank does not have become null.
#include "schema/node_tests.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "schema/json.h"

namespace shardmark {
namespace {

double number_from(const nlohmann::ordered_json& json) {
  return json.is_number() ? json.get<double>() : std::nan("");
}

NodeTests from_json(const nlohmann::ordered_json& json) {
  NodeTests tests;
  for (const auto& [key, values] : json.at("by_rank").items())
    for (const auto& value : values) tests.by_rank[key].push_back(number_from(value));
  for (const auto& one : json.at("found"))
    tests.found.push_back({one.at("severity").get<std::string>(), one.at("ranks").get<std::vector<int64_t>>(),
                           one.at("what").get<std::string>()});
  tests.is_crowded = json.value("crowded", false);
  tests.baseline = json.value("baseline", "");
  if (json.contains("expected"))
    for (const auto& [key, value] : json.at("expected").items()) tests.expected[key] = number_from(value);
  return tests;
}

}  // namespace

const std::vector<double>* NodeTests::values(std::string_view key) const {
  const auto found_key = by_rank.find(key);
  return found_key == by_rank.end() ? nullptr : &found_key->second;
}

void keep(const NodeTests& tests, Environment& environment) {
  auto& json = (*environment.facts)[kNodeTestsFact];
  json["by_rank"] = nlohmann::ordered_json::object();
  for (const auto& [key, values] : tests.by_rank) {
    auto& list = json["by_rank"][key] = nlohmann::ordered_json::array();
    for (const double value : values) list.push_back(json_of(value));
  }
  json["found"] = nlohmann::ordered_json::array();
  for (const NodeTests::Found& one : tests.found)
    json["found"].push_back({{"severity", one.severity}, {"ranks", one.ranks}, {"what", one.what}});
  if (tests.is_crowded) json["crowded"] = true;
  if (tests.baseline.empty()) return;
  json["baseline"] = tests.baseline;
  for (const auto& [key, value] : tests.expected) json["expected"][key] = value;
}

std::optional<NodeTests> node_tests_of(const Environment& environment) {
  const nlohmann::ordered_json& facts = *environment.facts;
  const auto found = facts.find(kNodeTestsFact);
  if (found == facts.end()) return std::nullopt;
  try {
    return from_json(*found);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::map<std::string, double, std::less<>> medians_of(const NodeTests& tests) {
  std::map<std::string, double, std::less<>> medians;
  for (const auto& [key, values] : tests.by_rank) {
    std::vector<double> known;
    for (const double value : values)
      if (std::isfinite(value) && value > 0) known.push_back(value);
    if (!known.empty()) medians[key] = median(std::move(known));
  }
  return medians;
}

}  // namespace shardmark
