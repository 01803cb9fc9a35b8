// Tests of nodes as JSON. Numbers that a rank does not have become null.
#include "schema/node_tests.h"

#include <algorithm>
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
  tests.hosts = json.at("hosts").get<std::vector<std::string>>();
  for (const auto& [key, values] : json.at("by_rank").items())
    for (const auto& value : values) tests.by_rank[key].push_back(number_from(value));
  for (const auto& one : json.at("damage"))
    tests.damage.push_back({one.at(0).get<int64_t>(), one.at(1).get<int64_t>(), one.at(2).get<int64_t>()});
  for (const auto& one : json.at("found"))
    tests.found.push_back({one.at("severity").get<std::string>(), one.at("ranks").get<std::vector<int64_t>>(),
                           one.at("what").get<std::string>()});
  tests.notes = json.at("notes").get<std::vector<std::string>>();
  tests.is_stopped = json.value("stopped", false);
  tests.is_crowded = json.value("crowded", false);
  tests.baseline = json.value("baseline", "");
  if (json.contains("expected"))
    for (const auto& [key, value] : json.at("expected").items()) tests.expected[key] = number_from(value);
  return tests;
}

nlohmann::ordered_json to_json(const NodeTests& tests) {
  nlohmann::ordered_json json;
  json["hosts"] = tests.hosts;
  json["by_rank"] = nlohmann::ordered_json::object();
  for (const auto& [key, values] : tests.by_rank) {
    auto& list = json["by_rank"][key] = nlohmann::ordered_json::array();
    for (const double value : values) list.push_back(json_of(value));
  }
  json["damage"] = nlohmann::ordered_json::array();
  for (const Damage& one : tests.damage) json["damage"].push_back({one.sender, one.receiver, one.elements});
  json["found"] = nlohmann::ordered_json::array();
  for (const NodeTests::Found& one : tests.found)
    json["found"].push_back({{"severity", one.severity}, {"ranks", one.ranks}, {"what", one.what}});
  json["notes"] = tests.notes;
  if (tests.is_stopped) json["stopped"] = true;
  if (tests.is_crowded) json["crowded"] = true;
  if (tests.baseline.empty()) return json;
  json["baseline"] = tests.baseline;
  for (const auto& [key, value] : tests.expected) json["expected"][key] = value;
  return json;
}

}  // namespace

const std::vector<double>* NodeTests::values(std::string_view key) const {
  const auto found_key = by_rank.find(key);
  return found_key == by_rank.end() ? nullptr : &found_key->second;
}

bool NodeTests::has_faults() const {
  const std::vector<double>* const wrong = values(node_tests::kWrongProduct);
  return is_stopped || !damage.empty() ||
         std::any_of(found.begin(), found.end(), [](const Found& one) { return one.severity == "error"; }) ||
         (wrong != nullptr && std::any_of(wrong->begin(), wrong->end(), [](double x) { return x > 0; }));
}

void keep(const NodeTests& tests, Environment& environment) {
  auto& all = (*environment.facts)[kNodeTestsFact];
  if (!all.is_array()) all = nlohmann::ordered_json::array();
  all.push_back(to_json(tests));
}

std::vector<NodeTests> node_tests_of(const Environment& environment) {
  std::vector<NodeTests> all;
  const nlohmann::ordered_json& facts = *environment.facts;
  const auto found = facts.find(kNodeTestsFact);
  if (found == facts.end() || !found->is_array()) return all;
  for (const auto& one : *found) {
    try {
      all.push_back(from_json(one));
    } catch (const nlohmann::json::exception&) {  // of another program, or damaged
    }
  }
  return all;
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
