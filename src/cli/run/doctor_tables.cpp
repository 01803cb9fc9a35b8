// Tables of facts about the machine. Nodes with equal facts share a row.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/table/columns.h"
#include "base/ranges.h"
#include "base/units.h"
#include "cli/run/doctor_output.h"
#include "doctor/load.h"
#include "doctor/placement.h"

namespace shardmark {
namespace {

using doctor::RankFacts;

std::string bytes_text(int64_t bytes) {
  if (bytes == doctor::kUnknown) return "unknown";
  if (bytes == std::numeric_limits<int64_t>::max()) return "unlimited";
  return format_bytes(static_cast<double>(bytes));
}

std::string cores_text(const RankFacts& rank) {
  const std::string quota = rank.cpu.quota > 0 ? fmt::format(", {:g} by cgroup", rank.cpu.quota) : "";
  return fmt::format("{}; {} cores{}, {} NUMA node{}", rank.cpu.name, rank.cpu.node_cores, quota,
                     rank.cpu.node_numa, rank.cpu.node_numa == 1 ? "" : "s");
}

std::string memory_text(const RankFacts& rank) {
  const auto& node = rank.node;
  return bytes_text(node.memory_bytes) +
         (node.limit_bytes > 0 ? fmt::format(", {} by cgroup", bytes_text(node.limit_bytes)) : "");
}

// There are three cases: no driver shows a GPU; the driver shows GPUs, but the rank computes on the CPU; the
// rank computes on a GPU.
std::string gpus_text(const RankFacts& rank) {
  const auto& gpu = rank.gpu;
  if (gpu.in_node == doctor::kUnknown && gpu.visible == 0)
    return gpu.on_bus == 0 ? "none" : fmt::format("{} on the PCI bus, no driver responds", gpu.on_bus);
  if (!rank.on_gpu())
    return fmt::format("{} on the node{}, {} visible, not used; driver {}", gpu.in_node,
                       gpu.name_in_node.empty() ? "" : " (" + gpu.name_in_node + ")", gpu.visible,
                       rank.versions.driver);
  return fmt::format("{} x {}, {} visible to a rank; driver {}; cap {} W of {} W, clock set to {} of {} MHz",
                     gpu.in_node, gpu.name, gpu.visible, rank.versions.driver, gpu.power_cap_w,
                     gpu.default_cap_w, gpu.set_clock_mhz, gpu.most_clock_mhz);
}

std::string libraries_text(const RankFacts& rank) {
  const auto& v = rank.versions;
  return fmt::format("{}; NCCL {}; CUDA {}; cuDNN {}; cuBLAS {}; torch {}; HDF5 {}", v.mpi, v.nccl, v.cuda,
                     v.cudnn, v.cublas, v.torch, v.hdf5);
}

std::string limits_text(const RankFacts& rank) {
  return fmt::format("{} files open, {} locked; InfiniBand: {}", rank.node.open_files,
                     bytes_text(rank.node.locked_bytes), rank.node.infiniband ? "yes" : "no");
}

std::string output_text(const RankFacts& rank) {
  const auto& node = rank.node;
  return fmt::format("{}: {}, {} free; file locking {}", node.output, node.file_system,
                     bytes_text(node.disk_bytes), node.locking.empty() ? "could not be tried" : node.locking);
}

// The minimum over nodes. Free memory always differs between nodes, so a row for each value would not help.
std::string least_free(const std::vector<RankFacts>& world, int64_t doctor::HostFacts::*free) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const RankFacts& rank : world) least = std::min(least, rank.node.*free);
  return bytes_text(least);
}

class MachineRows {
 public:
  MachineRows(Table& table, const std::vector<RankFacts>& world) : table_(table), world_(world) {}
  void add(const std::string& what, const std::string& found, const std::string& where = "") {
    table_.rows.push_back(
        {{what, what}, {found, found}, {where, where.empty() ? OptionValue() : OptionValue(where)}});
  }
  // Adds a row for each distinct value, with the nodes that have it. The first rank of each node speaks for
  // the node. If all nodes agree, the row names none.
  void add(const std::string& what, std::string (*text)(const RankFacts&)) {
    std::vector<std::pair<std::string, std::vector<std::string>>> values;
    for (const RankFacts& rank : world_) {
      if (rank.local_rank != 0) continue;
      const std::string found = text(rank);
      auto value =
          std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.first == found; });
      if (value == values.end()) value = values.insert(values.end(), {found, {}});
      value->second.push_back(rank.host);
    }
    for (const auto& [found, hosts] : values) add(what, found, values.size() == 1 ? "" : names_text(hosts));
  }

 private:
  Table& table_;
  const std::vector<RankFacts>& world_;
};

// Adds the load by other processes on the busiest node: the one on which they take the largest share of the
// processors.
void add_load(MachineRows& rows, const std::vector<RankFacts>& world) {
  const std::vector<doctor::NodeLoad> loads = doctor::node_loads(world);
  const auto busiest = std::max_element(loads.begin(), loads.end(), [](const auto& a, const auto& b) {
    return a.taken() / static_cast<double>(a.processors) < b.taken() / static_cast<double>(b.processors);
  });
  if (busiest == loads.end())
    rows.add("load", "unknown");
  else
    rows.add("load", to_text(*busiest), loads.size() == 1 ? "" : "most on " + busiest->node);
}

struct PlacedRank {
  const doctor::NodePlacement* layout;
  const RankFacts* rank;
};

Cell gpu_cell(const PlacedRank& row) {
  if (!row.rank->on_gpu()) return {"", nullptr};
  const std::string gpu = fmt::format("{}, NUMA {}", row.rank->gpu.pci, row.rank->gpu.numa);
  return {gpu, gpu};
}

ColumnsOf<PlacedRank> placement_columns() {
  const auto number = [](int64_t value) { return Cell{std::to_string(value), value}; };
  const auto words = [](const std::string& text) { return Cell{text, text}; };
  return {{{"nodes", "", false, false, "", Starts::group},
           [=](const auto& row) { return words(names_text(row.layout->nodes)); },
           "nodes with the same placement are shown once, with the ranks of the first."},
          {{"rank", ""}, [=](const auto& row) { return number(row.rank->rank); }},
          {{"of node", ""}, [=](const auto& row) { return number(row.rank->local_rank); }},
          {{"cores", "", false},
           [=](const auto& row) { return words(row.rank->cpu.allowed); },
           "logical processors."},
          {{"NUMA", "", false}, [=](const auto& row) { return words(row.rank->cpu.numa); }},
          {{"GPU", "", false, true}, gpu_cell},
          {{"bound by", "", false}, [=](const auto& row) { return words(row.rank->cpu.bound_by); }}};
}

}  // namespace

Table machine_table(const std::vector<RankFacts>& world, const std::vector<Line>& extra) {
  Table table;
  table.key = "machine";
  table.title = "Machine";
  table.columns = {{"what", "", false}, {"found", "", false}, {"where", "", false, /*fold=*/true}};
  MachineRows rows(table, world);
  std::vector<std::string> nodes;
  for (const RankFacts& rank : world)
    if (rank.local_rank == 0) nodes.push_back(rank.host);
  rows.add("nodes", fmt::format("{}: {}", nodes.size(), names_text(nodes)));
  rows.add("ranks", doctor::placement_line(world));
  rows.add("processor", cores_text);
  add_load(rows, world);
  rows.add("memory", memory_text);
  rows.add("memory free", least_free(world, &doctor::HostFacts::free_bytes));
  rows.add("/dev/shm free", least_free(world, &doctor::HostFacts::shm_bytes));
  rows.add("GPUs", gpus_text);
  rows.add("libraries", libraries_text);
  rows.add("kernel", [](const RankFacts& rank) { return rank.versions.kernel; });
  rows.add("limits", limits_text);
  rows.add("studies", output_text(world.front()));
  for (const Line& line : extra) rows.add(line.what, line.found);
  return table;
}

Table placement_table(const std::vector<RankFacts>& world) {
  const std::vector<doctor::NodePlacement> layouts = doctor::node_placements(world);
  std::vector<PlacedRank> rows;
  for (const doctor::NodePlacement& layout : layouts)
    for (const RankFacts* rank : layout.ranks) rows.push_back({&layout, rank});
  return make_table("placement", "Placement of ranks", placement_columns(), rows);
}

std::string findings_text(const std::vector<doctor::Finding>& findings, size_t num_bad) {
  std::string text;
  for (const doctor::Finding& finding : findings)
    text += fmt::format("{:<7} {}: {}\n{:<7} fix: {}\n", to_text(finding.severity), ranks_text(finding.ranks),
                        finding.what, "", finding.fix);
  // Notes are printed, but there is nothing to fix in them.
  const auto ill = std::count_if(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    return finding.severity != doctor::Severity::note;
  });
  const auto bad = static_cast<size_t>(ill) + num_bad;
  return text + (bad == 0 ? "healthy: nothing stops or slows a run\n" : fmt::format("{} to fix\n", bad));
}

nlohmann::ordered_json findings_json(const std::vector<doctor::Finding>& findings) {
  auto all = nlohmann::ordered_json::array();
  for (const doctor::Finding& finding : findings)
    all.push_back({{"severity", to_text(finding.severity)},
                   {"ranks", finding.ranks},
                   {"what", finding.what},
                   {"fix", finding.fix}});
  return all;
}

JUnitSuite doctor_tests(const std::vector<doctor::RankFacts>& world,
                        const std::vector<doctor::Finding>& findings,
                        const std::optional<LinkReport>& links) {
  using Outcome = JUnitCase::Outcome;
  JUnitSuite suite{"shardmark doctor", {{"ranks", fmt::format("{}", world.size())}}, {}};
  // Every check is a test case, also one that found nothing, so that CI shows what was checked. Errors and
  // warnings make it fail; notes do not.
  for (const doctor::Check& check : doctor::kChecks) {
    JUnitCase result{check.name};
    for (const doctor::Finding& finding : findings) {
      if (finding.check != check.name || finding.severity == doctor::Severity::note) continue;
      result.outcome = Outcome::failed;
      result.message += (result.message.empty() ? "" : "\n") + to_text(finding);
    }
    suite.cases.push_back(result);
  }
  if (links)
    for (const LinkReport::Test& test : links->tests()) {
      std::vector<std::string> bad = test.verdicts->wrong;
      bad.insert(bad.end(), test.verdicts->slow.begin(), test.verdicts->slow.end());
      suite.cases.push_back({test.name, bad.empty() ? Outcome::passed : Outcome::failed,
                             fmt::format("{}", fmt::join(bad, "\n"))});
    }
  return suite;
}

}  // namespace shardmark
