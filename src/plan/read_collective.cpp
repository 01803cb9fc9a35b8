// Collective blocks: operations, sizes, element types.
#include <algorithm>

#include "base/units.h"
#include "laws/vocabulary.h"
#include "plan/axes.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 40;

// Sizes from `from` to at most `to`, each `factor` times the one before.
void append_range(const YamlNode& node, std::vector<int64_t>& sizes) {
  const YamlMap map(node, "a range of bytes", {"from", "to", "factor"});
  const int64_t from = read_size(map.need("from")), to = read_size(map.need("to"));
  const int64_t factor = map.find("factor") != nullptr ? map.find("factor")->integer(2, kMostBytes) : 2;
  if (from > to) node.fail("from " + std::to_string(from) + " is above to " + std::to_string(to));
  for (int64_t bytes = from; bytes <= to; bytes *= factor) {
    sizes.push_back(bytes);
    if (bytes > to / factor) break;  // the next one would be above, or too large for 64 bits
  }
}

std::vector<int64_t> read_sizes(const YamlNode& node) {
  std::vector<int64_t> sizes;
  for (const auto& item : node.items())
    if (item.is_map())
      append_range(item, sizes);
    else
      sizes.push_back(read_size(item));
  return sizes;
}

std::vector<std::string> read_operations(const YamlNode& node) {
  auto known = names_of(laws::collective_laws());
  auto accepted = known;
  accepted.push_back("all");
  auto operations = read_words(node, accepted);
  if (operations == std::vector<std::string>{"all"}) return known;
  if (std::find(operations.begin(), operations.end(), "all") != operations.end())
    node.fail("'all' stands for every operation; write it alone");
  return operations;
}

}  // namespace

int64_t read_size(const YamlNode& node) {
  int64_t bytes = 0;
  try {
    bytes = parse_bytes(node.text());
  } catch (const UsageError& error) {
    node.fail(quoted_line(node.text()) +
              " is no size; accepted: 8, 4KiB, 25MB, 128MiB, 1GiB (K, M, G: powers of 1024)");
  }
  if (bytes < 1 || bytes > kMostBytes) node.fail("expected 1 byte to 1 TiB, got " + node.describe());
  return bytes;
}

CollectiveAxes read_collective(const YamlNode& block, const CommonAxes& defaults) {
  const YamlMap map(
      block, "collectives",
      {"operation", "dtype", "reduction", "bytes", "in_place", "ranks", "transport", "sampling"});
  CollectiveAxes axes;
  static_cast<CommonAxes&>(axes) = read_common(map, defaults);
  axes.operations = read_operations(map.need("operation"));
  axes.sizes = read_sizes(map.need("bytes"));
  if (const auto* found = map.find("dtype")) axes.dtypes = read_words(*found, laws::dtype_names());
  if (const auto* found = map.find("reduction"))
    axes.reductions = read_words(*found, laws::reduction_names());
  if (const auto* found = map.find("in_place"))
    axes.in_place = read_axis(*found, [](const YamlNode& item) { return item.boolean(); });
  return axes;
}

}  // namespace shardmark
