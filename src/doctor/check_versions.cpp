// Checks versions: the same on all ranks, and loaded libraries compared with those compiled against.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

// Reports the ranks whose version differs from that of most ranks. With a tie, the first version in
// alphabetical order counts as that of most.
void check_same(const World& world, Findings& findings, const char* what, std::string VersionFacts::*version,
                Severity severity, const char* fix) {
  const auto by_version =
      grouped<std::string>(world, [&](const RankFacts& rank) { return rank.versions.*version; });
  if (by_version.size() < 2) return;
  const auto usual = std::max_element(by_version.begin(), by_version.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  Affected other;
  std::vector<std::string> versions;
  for (const auto& [found, ranks] : by_version) {
    if (found == usual->first) continue;
    other.add(ranks);
    versions.push_back(found.empty() ? "none" : found);
  }
  other.report(findings, severity,
               fmt::format("{} {} on {}, {} elsewhere", what, names_text(versions), other.hosts(),
                           usual->first.empty() ? "none" : usual->first),
               fix);
}

// Splits a version: "2.28.9" gives {2, 28, 9}.
std::vector<int> numbers_in(const std::string& version) {
  std::vector<int> numbers;
  std::istringstream parts(version);
  for (std::string part; std::getline(parts, part, '.');) numbers.push_back(std::atoi(part.c_str()));
  return numbers;
}

// An NCCL library runs programs that were compiled for an older minor version, but not for a newer one.
void check_nccl_loaded(const World& world, Findings& findings) {
  Affected older, newer;
  std::string loaded, built;
  for (const RankFacts& rank : world) {
    const VersionFacts& v = rank.versions;
    if (v.nccl == v.nccl_built || v.nccl.empty()) continue;
    (numbers_in(v.nccl) < numbers_in(v.nccl_built) ? older : newer).add(rank);
    loaded = v.nccl;
    built = v.nccl_built;
  }
  newer.report(
      findings, Severity::note,
      fmt::format("NCCL {} is loaded, newer than what shardmark was compiled with, {}", loaded, built),
      "build again to be sure of both");
  older.report(findings, Severity::warning,
               fmt::format("NCCL {} is loaded, but shardmark was compiled with {}", loaded, built),
               "see LD_LIBRARY_PATH and LD_PRELOAD for another libnccl, or build again");
}

}  // namespace

void check_versions(const World& world, Findings& findings) {
  constexpr auto kBuild = "all nodes must run one build: put repository and .venv on a shared file system";
  check_same(world, findings, "shardmark", &VersionFacts::shardmark, Severity::error, kBuild);
  check_same(world, findings, "NCCL", &VersionFacts::nccl, Severity::error, kBuild);
  check_same(world, findings, "torch", &VersionFacts::torch, Severity::error, kBuild);
  check_same(world, findings, "MPI", &VersionFacts::mpi, Severity::warning,
             "load the same MPI module on all nodes; see LD_LIBRARY_PATH");
  check_same(world, findings, "cuDNN", &VersionFacts::cudnn, Severity::warning, "see LD_LIBRARY_PATH");
  check_same(world, findings, "HDF5", &VersionFacts::hdf5, Severity::note, "see LD_LIBRARY_PATH");
  check_same(world, findings, "CUDA runtime", &VersionFacts::cuda, Severity::warning, kBuild);
  check_same(world, findings, "GPU driver", &VersionFacts::driver, Severity::warning,
             "update the driver of these nodes, or leave them out");
  check_same(world, findings, "kernel", &VersionFacts::kernel, Severity::note, "update these nodes");
  check_nccl_loaded(world, findings);
}

}  // namespace shardmark::doctor
