// Reads what a user says of failures: --failures restart=10m rate=rsc1 checkpoint_write=60s.
#include "cli/failure_flags.h"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "base/key_value.h"
#include "cli/parsed.h"
#include "cli/values.h"

namespace shardmark {
namespace {

FailureQuery read_failures(const std::vector<std::string>& texts) {
  constexpr Duration kPause{values::kDuration.most, /*is_open=*/false};
  constexpr Real kWatts{0, 1e6, /*is_open=*/true};
  FailureQuery query;
  const std::map<std::string, std::function<void(const std::string&)>> readers = {
      {"restart", [&](const std::string& text) { query.restart_s = kPause.parse(text); }},
      {"rate", [&](const std::string& text) { query.per_node_hour = FailureRate::parse(text); }},
      {"checkpoint_write", [&](const std::string& text) { query.write_s = values::kDuration.parse(text); }},
      {"checkpoint_read", [&](const std::string& text) { query.read_s = kPause.parse(text); }},
      {"watts", [&](const std::string& text) { query.watts = kWatts.parse(text); }}};
  std::vector<std::string> keys;
  for (const auto& [key, read] : readers) keys.push_back(key);
  for (const std::string& text : texts) {
    const auto [key, value] = key_value(text, "--failures", keys);
    parsed("--failures " + key, [&, &key = key, &value = value] { readers.at(key)(value); });
  }
  if (!query.is_asked())
    throw UsageError("--failures: needs restart=TIME, from a failure until ranks read their checkpoint");
  return query;
}

}  // namespace

void add_failure_flags(CLI::App& app, FailureQuery& query) {
  offer(app.add_option_function<std::vector<std::string>>(
            "--failures", [&query](const std::vector<std::string>& texts) { query = read_failures(texts); },
            fmt::format(
                "of nodes: adds goodput, the share of time that they leave; restart=10m from a failure "
                "until ranks read their checkpoint, and if known rate=0.001 of a node and hour (default: "
                "{}), checkpoint_write=60s, checkpoint_read=30s, watts=700 of a rank",
                kPublishedFailures.front().name)),
        {});
}

}  // namespace shardmark
