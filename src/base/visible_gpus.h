// CUDA_VISIBLE_DEVICES: which GPUs of the node a process may use, as CUDA reads the list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmark {

// The entries up to the first that can name no GPU ("-1", "NoDevFiles", nothing at all), where CUDA stops
// reading: none of "", "-1,0". An entry is an index ("0"), the beginning of a UUID ("GPU-8932f937") or of a
// slice's ("MIG-...").
std::vector<std::string> listed_gpus(const std::string& visible_devices);

bool is_slice(const std::string& entry);  // of a GPU (MIG)

// GPUs that CUDA shows of those that `nvidia-smi -L` lists: up to the first entry that is none of them, and
// none at all where one is named twice.
int64_t count_visible_gpus(const std::string& nvidia_smi, const std::string& visible_devices);
int64_t count_gpus(const std::string& nvidia_smi);  // all that it lists

}  // namespace shardmark
