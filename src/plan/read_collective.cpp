// Collective blocks: operations, sizes, element types.
#include <algorithm>

#include "laws/collectives.h"
#include "laws/vocabulary.h"
#include "plan/axes.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

// Sizes from `from` to at most `to`, each `factor` times the one before.
void append_range(const YamlNode& node, std::vector<int64_t>& sizes) {
  const YamlMap map(node, "a range of bytes", {"from", "to", "factor"});
  const int64_t from = map.need("from").value(values::kMessage), to = map.need("to").value(values::kMessage);
  constexpr Whole kFactor{2, values::kMessage.most};
  const int64_t factor = map.find("factor") != nullptr ? map.find("factor")->value(kFactor) : 2;
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
      sizes.push_back(item.value(values::kMessage));
  return sizes;
}

std::vector<std::string> read_operations(const YamlNode& node) {
  auto known = laws::collective_names();
  auto accepted = known;
  accepted.push_back("all");
  auto operations = read_values(node, Word{accepted});
  if (operations == std::vector<std::string>{"all"}) return known;
  if (std::find(operations.begin(), operations.end(), "all") != operations.end())
    node.fail("'all' stands for every operation; write it alone");
  return operations;
}

}  // namespace

CollectiveAxes read_collective(const YamlNode& block, const CommonAxes& defaults) {
  const YamlMap map(
      block, "collectives",
      {"operation", "dtype", "reduction", "bytes", "in_place", "ranks", "transport", "sampling"});
  CollectiveAxes axes;
  static_cast<CommonAxes&>(axes) = read_common(map, defaults);
  axes.operations = read_operations(map.need("operation"));
  axes.sizes = read_sizes(map.need("bytes"));
  if (const auto* found = map.find("dtype")) axes.dtypes = read_values(*found, Word{laws::dtype_names()});
  if (const auto* found = map.find("reduction"))
    axes.reductions = read_values(*found, Word{laws::reduction_names()});
  if (const auto* found = map.find("in_place"))
    axes.in_place = read_axis(*found, [](const YamlNode& item) { return item.boolean(); });
  return axes;
}

}  // namespace shardmark
