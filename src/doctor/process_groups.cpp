// Tensor, context and expert parallel groups consist of ranks with neighbouring numbers (specs/mesh.h), but a
// launcher may deal rank numbers out round-robin over the nodes.
#include "doctor/process_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "doctor/groups.h"
#include "specs/mesh.h"

namespace shardmark::doctor {
namespace {

using specs::Dimension;

// The groups of one kind that span nodes.
struct Spanning {
  Affected ranks;
  size_t most_nodes = 0;  // the most that one group spans
};

// [rank], the number of its node; nodes are numbered in the order in which ranks show them.
std::vector<size_t> nodes_by_rank(const World& world) {
  std::map<std::string, size_t> numbers;
  std::vector<size_t> nodes;
  for (const RankFacts& rank : world)
    nodes.push_back(numbers.try_emplace(rank.host + "\n" + rank.machine, numbers.size()).first->second);
  return nodes;
}

// Collects the ranks whose group has members on several nodes. A point may have fewer ranks than the world;
// it then runs on the first ones.
Spanning find_spanning(const World& world, const std::vector<size_t>& nodes, int64_t num_ranks,
                       const specs::ProcessGroup& process_group) {
  std::map<int64_t, std::set<size_t>> nodes_of_group;
  for (int64_t rank = 0; rank < num_ranks; ++rank)
    nodes_of_group[process_group.number_of(rank)].insert(nodes[static_cast<size_t>(rank)]);
  Spanning found;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const size_t count = nodes_of_group[process_group.number_of(rank)].size();
    found.most_nodes = std::max(found.most_nodes, count);
    if (count > 1) found.ranks.add(world[static_cast<size_t>(rank)]);
  }
  return found;
}

// Whether each node has ranks with consecutive numbers.
bool are_in_order(const std::vector<size_t>& nodes) { return std::is_sorted(nodes.begin(), nodes.end()); }

size_t most_ranks_on_a_node(const std::vector<size_t>& nodes) {
  size_t most = 0;
  for (const size_t node : nodes)
    most = std::max(most, static_cast<size_t>(std::count(nodes.begin(), nodes.end(), node)));
  return most;
}

// Such as "tensor 4"; for ranks that are not direct neighbours "tensor 2 x context 4".
std::string neighbours_text(const specs::Mesh& mesh, Dimension dimension) {
  std::string text = mesh.tensor > 1 ? fmt::format("tensor {}", mesh.tensor) : "";
  const auto add = [&](const char* name, int64_t ranks) {
    if (ranks > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, ranks);
  };
  if (dimension == Dimension::tensor) return text;
  if (dimension == Dimension::expert && mesh.has_experts_on_tensor_ranks())
    return fmt::format("expert {}", mesh.expert);  // consecutive ranks
  if (mesh.pipeline_inside) add("pipeline", mesh.pipeline);
  if (dimension == Dimension::context)
    add("context", mesh.context);
  else
    add("expert", mesh.expert);
  return text;
}

std::string fix_text(bool is_product, const std::vector<size_t>& nodes) {
  if (!are_in_order(nodes))
    return "give neighbouring ranks to one node: srun --distribution=block, mpirun --map-by slot";
  return fmt::format("take {} the ranks of each node ({} at most)",
                     is_product ? "values whose product divides" : "a value that divides",
                     most_ranks_on_a_node(nodes));
}

}  // namespace

Findings check_process_groups(const World& world, const std::vector<Point>& points) {
  const std::vector<size_t> nodes = nodes_by_rank(world);
  Findings findings;
  std::set<std::tuple<Dimension, int64_t, int64_t>> seen;  // dimension, size and stride of its group
  for (const Point& point : points) {
    if (point.workload == "collective" || !point.impossible.empty()) continue;
    const specs::Mesh mesh = specs::mesh_of(point);
    const int64_t num_ranks = std::min(point.ranks, static_cast<int64_t>(world.size()));
    for (const auto& [dimension, shared, inside] :
         {std::tuple(Dimension::tensor, "every block", "every block"),
          {Dimension::context, "every sequence", "every attention"},
          {Dimension::expert, "the experts of a layer", "every layer"}}) {
      // Tokens that travel once to each n neighbours are meant to travel between nodes.
      const int64_t neighbours_of_dispatch =
          dimension == Dimension::expert && point.training.dispatch > 1 ? point.training.dispatch : 0;
      const specs::ProcessGroup process_group =
          mesh.process_group_of(dimension).among({neighbours_of_dispatch, 1});
      if (process_group.ranks == 1) continue;
      const Spanning spanning = find_spanning(world, nodes, num_ranks, process_group);
      if (!spanning.ranks.any() || !seen.emplace(dimension, process_group.ranks, process_group.stride).second)
        continue;
      const std::string neighbours = neighbours_of_dispatch > 0
                                         ? fmt::format("dispatch {}", neighbours_of_dispatch)
                                         : neighbours_text(mesh, dimension);
      spanning.ranks.report(
          findings, Severity::warning,
          fmt::format("{}: ranks that share {} are on {}, and exchange between them inside {}", neighbours,
                      shared, counted(static_cast<int64_t>(spanning.most_nodes), "node"), inside),
          fix_text(neighbours.find(" x ") != std::string::npos, nodes));
      findings.back().check = kGroupsCheck;
    }
  }
  return findings;
}

}  // namespace shardmark::doctor
