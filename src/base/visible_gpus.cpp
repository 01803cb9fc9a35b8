// Implements the rules of CUDA's programming guide for CUDA_VISIBLE_DEVICES.
#include "base/visible_gpus.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

namespace shardmark {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::optional<int64_t> index_of(const std::string& entry) {
  int64_t index = 0;
  const char* const end = entry.data() + entry.size();
  const auto read = std::from_chars(entry.data(), end, index);
  if (read.ec != std::errc() || read.ptr != end || index < 0) return {};
  return index;
}

// `nvidia-smi -L` prints a line for each GPU: "GPU 0: NVIDIA H200 (UUID: GPU-8932f937-...)". Lines of MIG
// devices are indented, so they do not begin with GPU.
std::vector<std::string> lines_of_gpus(const std::string& nvidia_smi) {
  std::istringstream lines(nvidia_smi);
  std::vector<std::string> gpus;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("GPU")) gpus.push_back(line);
  return gpus;
}

// The position in the list of the GPU that an entry names.
std::optional<int64_t> place_of(const std::string& entry, const std::vector<std::string>& gpus) {
  if (const auto index = index_of(entry); index) return *index < std::ssize(gpus) ? index : std::nullopt;
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
    if (gpus[gpu].find("UUID: " + entry) != std::string::npos) return static_cast<int64_t>(gpu);
  return {};
}

}  // namespace

std::vector<std::string> listed_gpus(const std::string& visible_devices) {
  std::istringstream parts(visible_devices);
  std::vector<std::string> entries;
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string entry = trimmed(part);
    if (!index_of(entry) && !entry.starts_with("GPU-") && !is_slice(entry)) break;
    entries.push_back(entry);
  }
  return entries;
}

bool is_slice(const std::string& entry) { return entry.starts_with("MIG-"); }

int64_t count_visible_gpus(const std::string& nvidia_smi, const std::string& visible_devices) {
  const auto gpus = lines_of_gpus(nvidia_smi);
  if (gpus.empty()) return 0;
  std::set<std::string> slices;
  std::set<int64_t> places;
  int64_t count = 0;
  // CUDA shows the GPUs before the first entry that names none. If it meets one for the second time before
  // that, it shows no GPU at all. The list of `nvidia-smi` is not searched for MIG devices: each counts as
  // there.
  for (const std::string& entry : listed_gpus(visible_devices)) {
    const auto place = is_slice(entry) ? std::nullopt : place_of(entry, gpus);
    if (!is_slice(entry) && !place) break;
    if (is_slice(entry) ? !slices.insert(entry).second : !places.insert(*place).second) return 0;
    ++count;
  }
  return count;
}

int64_t count_gpus(const std::string& nvidia_smi) { return std::ssize(lines_of_gpus(nvidia_smi)); }

}  // namespace shardmark
