// What a suite with `accept` finds out about every node before its points are measured: numbers of each rank,
// and what the preflight reported. A study keeps them as a fact of its environment, one for each start of the
// ranks.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/damage.h"
#include "schema/environment.h"

namespace shardmark {

// The keys of NodeTests::by_rank.
namespace node_tests {
inline constexpr std::string_view kProductS = "product_time";            // s, of a matrix product
inline constexpr std::string_view kWrongProduct = "wrong_product";       // 1: unlike most ranks' result
inline constexpr std::string_view kCopied = "copy_rate";                 // bytes/s, from memory to memory
inline constexpr std::string_view kInNode = "bandwidth_in_node";         // bytes/s each way, in its node
inline constexpr std::string_view kBetweenNodes = "bandwidth_of_links";  // bytes/s each way, to other nodes
inline constexpr std::string_view kMessageS = "latency_of_links";        // s, of 8 bytes to another node
inline constexpr std::string_view kWritten = "write_rate";  // bytes/s, on the first rank of each node
inline constexpr std::string_view kRead = "read_rate";
}  // namespace node_tests

struct NodeTests {
  std::vector<std::string> hosts;  // of each rank
  // One value for each rank; NaN where the rank has none.
  std::map<std::string, std::vector<double>, std::less<>> by_rank;
  std::vector<Damage> damage;  // of messages

  // A finding of the preflight, or a test that failed on these ranks.
  struct Found {
    std::string severity;  // error, warning
    std::vector<int64_t> ranks;
    std::string what;  // one line, with what to do
  };
  std::vector<Found> found;
  std::vector<std::string> notes;  // of the whole cluster: what could not be tested, and why

  // The preflight found an error, so nothing was tested.
  bool is_stopped = false;
  // There are more ranks than cores on a machine, so ranks wait for cores and times differ widely.
  bool is_crowded = false;
  // The study that healthy values come from, and those values by key: medians over its ranks. Empty: there is
  // none, and ranks are compared with each other.
  std::string baseline = {};
  std::map<std::string, double, std::less<>> expected = {};

  const std::vector<double>* values(std::string_view key) const;  // nullptr: not measured
  // Whether a test failed, or a result or a message was wrong. Times do not count.
  bool has_faults() const;
};

// The fact that holds them.
inline constexpr const char* kNodeTestsFact = "node_tests";
void keep(const NodeTests& tests, Environment& environment);
// The tests of all starts of the study, the latest last. Empty if it was not made by such a suite. What is
// damaged is left out.
std::vector<NodeTests> node_tests_of(const Environment& environment);

// The medians of a study's tests, for `expected` of another one.
std::map<std::string, double, std::less<>> medians_of(const NodeTests& tests);

}  // namespace shardmark
