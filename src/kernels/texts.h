// The CUDA texts of this folder, embedded when the program is built.
#pragma once

#include <map>
#include <string>

namespace shardmark {

const std::map<std::string, std::string>& kernel_texts();  // by file: "layer_norm.cu"

}  // namespace shardmark
