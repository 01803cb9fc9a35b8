// CUDA_VISIBLE_DEVICES: the GPUs of the node that a process may use, read as CUDA reads the list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmark {

// Returns the entries up to the first that cannot name a GPU ("-1", "NoDevFiles", an empty entry), where CUDA
// stops reading. So "" and "-1,0" give no entries. An entry is an index ("0") or the beginning of the UUID of
// a GPU ("GPU-8932f937") or of a MIG device ("MIG-...").
std::vector<std::string> listed_gpus(const std::string& visible_devices);

bool is_slice(const std::string& entry);  // a MIG device

// How many of the GPUs that `nvidia-smi -L` lists are visible under CUDA: those up to the first entry that is
// not listed. CUDA shows none at all if one is named twice.
int64_t count_visible_gpus(const std::string& nvidia_smi, const std::string& visible_devices);
int64_t count_gpus(const std::string& nvidia_smi);  // all that are listed

}  // namespace shardmark
