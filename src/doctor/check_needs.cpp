// Checks what a GPU needs before it can compute: a driver that supports this CUDA version, an architecture
// for which this CUDA version still has kernels, and a list of visible GPUs that names existing ones.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "base/visible_gpus.h"
#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

constexpr const char* kCpu = "or run on the CPUs: --device cpu";

// Source: the release notes of CUDA, "minimum required driver version for minor version compatibility", and
// the architectures that its compiler has dropped.
struct Needs {
  int cuda, driver, capability;
  const char* generation;
};
constexpr Needs kNeeds[] = {{13, 580, 75, "Turing"}, {12, 525, 50, "Maxwell"}};

// For a CUDA version that is newer than the table, the requirements of the newest entry are a lower bound.
const Needs& needs_of(const RankFacts& rank) {
  const int major = std::atoi(rank.versions.cuda.c_str());
  const auto* found =
      std::find_if(std::begin(kNeeds), std::end(kNeeds), [&](const Needs& n) { return n.cuda == major; });
  return found == std::end(kNeeds) ? kNeeds[0] : *found;
}

bool is_named(const RankFacts& rank) { return rank.variables.contains("CUDA_VISIBLE_DEVICES"); }
std::string list_of(const RankFacts& rank) {
  const auto found = rank.variables.find("CUDA_VISIBLE_DEVICES");
  return found == rank.variables.end() ? "" : found->second;
}

// Whether CUDA shows fewer GPUs than the list names because the list is wrong. MIG devices have other rules
// and are not judged.
bool names_what_is_not_there(const RankFacts& rank) {
  const auto entries = listed_gpus(list_of(rank));
  if (std::any_of(entries.begin(), entries.end(), is_slice)) return false;
  if (std::ssize(entries) <= rank.gpu.visible) return false;
  return rank.on_gpu() || rank.gpu.cuda_error.empty() || rank.gpu.cuda_error.starts_with("cudaErrorNoDevice");
}

// Why a rank has no GPU, or cannot compute on the one that it has.
enum class Lack { nothing, generation, driver, list, empty_list, cuda, any_driver, screen_driver, gpu };

// The causes are tried in an order in which the first that holds explains the later ones: a GPU that is too
// old, a driver that is too old, a list that names no existing GPU, and only then CUDA itself. Without any
// GPU that a driver shows, cards on the PCI bus are evidence of a missing driver. A card that may only serve
// a screen is weaker evidence, so it is looked at last and makes a note.
Lack lack_of(const RankFacts& rank) {
  const GpuFacts& gpu = rank.gpu;
  const Needs& needs = needs_of(rank);
  if (rank.gpus_refused) return Lack::nothing;
  const bool is_old = gpu.capability != kUnknown && gpu.capability < needs.capability;
  if (is_old && (rank.on_gpu() || gpu.visible == 0)) return Lack::generation;
  if (rank.on_gpu()) return names_what_is_not_there(rank) ? Lack::list : Lack::nothing;
  if (gpu.in_node > 0) {
    const int driver = std::atoi(rank.versions.driver.c_str());
    if (driver > 0 && driver < needs.driver) return Lack::driver;
    if (is_named(rank) && listed_gpus(list_of(rank)).empty()) return Lack::empty_list;
    return names_what_is_not_there(rank) ? Lack::list : Lack::cuda;
  }
  if (rank.versions.driver.empty() && gpu.on_bus > 0) return Lack::any_driver;
  if (rank.gpus_wanted) return Lack::gpu;
  return rank.versions.driver.empty() && gpu.screens_on_bus > 0 ? Lack::screen_driver : Lack::nothing;
}

std::string version_text(int64_t capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

std::string count_text(int64_t gpus, const char* kind = "GPU") {
  return fmt::format("{} {}{}", gpus, kind, gpus == 1 ? "" : "s");
}

std::string what_of_list(const RankFacts& rank, const std::string& hosts) {
  const auto entries = listed_gpus(list_of(rank));
  const bool lists_a_gpu_twice =
      std::set<std::string>(entries.begin(), entries.end()).size() < entries.size();
  // CUDA stops reading at the first entry that names no GPU, and shows a GPU for each entry before it. So
  // the number of visible GPUs is the index of that entry.
  const auto bad = std::min(static_cast<size_t>(rank.gpu.visible), entries.size() - 1);
  return fmt::format(
      "CUDA_VISIBLE_DEVICES={} on {} names {}: CUDA shows {} of {}", quoted_line(list_of(rank)), hosts,
      lists_a_gpu_twice ? "a GPU twice"
                        : fmt::format("a GPU that does not exist ({})", quoted_line(entries[bad])),
      rank.gpu.visible, std::max(rank.gpu.in_node, rank.gpu.visible));
}

// Describes the lack with the facts of the first rank that has it.
std::string what(Lack lack, const RankFacts& rank, const std::string& hosts) {
  const GpuFacts& gpu = rank.gpu;
  const Needs& needs = needs_of(rank);
  const std::string& model = rank.on_gpu() ? gpu.name : gpu.name_in_node;
  switch (lack) {
    case Lack::generation:
      return fmt::format("{} on {} has compute capability {}; CUDA {} needs {} or newer, from {} on",
                         model.empty() ? "a GPU" : model, hosts, version_text(gpu.capability),
                         rank.versions.cuda, version_text(needs.capability), needs.generation);
    case Lack::driver:
      return fmt::format("{}{} on {} cannot be used: the driver is {}, CUDA {} needs {} or newer",
                         count_text(gpu.in_node), model.empty() ? "" : " (" + model + ")", hosts,
                         rank.versions.driver, rank.versions.cuda, needs.driver);
    case Lack::list:
      return what_of_list(rank, hosts);
    case Lack::empty_list:
      return fmt::format("CUDA_VISIBLE_DEVICES={} names none of the {} on {}", quoted_line(list_of(rank)),
                         count_text(gpu.in_node), hosts);
    case Lack::cuda:
      return fmt::format("there are {} on {}, but CUDA shows none to the ranks{}", count_text(gpu.in_node),
                         hosts, gpu.cuda_error.empty() ? "" : " (" + gpu.cuda_error + ")");
    case Lack::any_driver:
      return fmt::format("{} on the PCI bus of {}, but no driver responds",
                         count_text(gpu.on_bus, "NVIDIA GPU"), hosts);
    case Lack::screen_driver:
      return fmt::format("{} on the PCI bus of {}, but no NVIDIA driver responds",
                         count_text(gpu.screens_on_bus, "NVIDIA display adapter"), hosts);
    case Lack::gpu:
      return fmt::format("--device cuda, but CUDA shows no GPU on {}", hosts);
    case Lack::nothing:
      break;
  }
  return "";
}

std::string fix(Lack lack, const RankFacts& rank) {
  const int driver = needs_of(rank).driver;
  switch (lack) {
    case Lack::generation:
      return fmt::format("take nodes with newer GPUs, {}", kCpu);
    case Lack::driver:
      return fmt::format("install driver {} or newer (sudo apt install nvidia-driver-{}) and reboot, {}",
                         driver, driver, kCpu);
    case Lack::list:
      return "name GPUs that nvidia-smi -L lists, or unset CUDA_VISIBLE_DEVICES";
    case Lack::empty_list:
      return fmt::format("unset CUDA_VISIBLE_DEVICES, or name GPUs that nvidia-smi -L lists, {}", kCpu);
    case Lack::cuda:
      if (rank.gpu.cuda_error.starts_with("cudaErrorSystemNotReady"))
        return fmt::format("sudo systemctl start nvidia-fabricmanager, in the same version as the driver, {}",
                           kCpu);
      if (rank.gpu.cuda_error.starts_with("cudaErrorInsufficientDriver"))
        return fmt::format(
            "libcuda.so.1 is missing or older than the driver: reboot after an update; apptainer --nv, "
            "docker --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,utility; {}",
            kCpu);
      return fmt::format(
          "see nvidia-smi, dmesg and sbatch --gpus-per-node; apptainer --nv, docker --gpus all; a new driver "
          "needs a reboot; {}",
          kCpu);
    case Lack::any_driver:
    case Lack::screen_driver:
      return fmt::format(
          "install driver {} or newer, or load it (sudo modprobe nvidia; a new one needs a reboot; see "
          "dmesg); in a container apptainer --nv, docker --gpus all; {}",
          driver, kCpu);
    case Lack::gpu:
      return "see nvidia-smi and sbatch --gpus-per-node, or use --device cpu";
    case Lack::nothing:
      break;
  }
  return "";
}

// Only if no driver shows a GPU are CPUs used without asking; then nobody can have meant the GPUs.
Severity severity(Lack lack, const RankGroup& ranks) {
  if (ranks.front()->gpus_wanted) return Severity::error;
  if (lack == Lack::any_driver) return Severity::warning;
  return lack == Lack::screen_driver ? Severity::note : Severity::error;
}

}  // namespace

void check_needs(const World& world, Findings& findings) {
  for (const auto& [lack, ranks] : grouped<Lack>(world, lack_of)) {
    if (lack == Lack::nothing) continue;
    Affected lacking;
    lacking.add(ranks);
    const RankFacts& first = *ranks.front();
    lacking.report(findings, severity(lack, ranks), what(lack, first, lacking.hosts()), fix(lack, first));
  }
}

}  // namespace shardmark::doctor
