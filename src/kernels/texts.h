// The CUDA source texts of this folder, which the build embeds in the program.
#pragma once

#include <map>
#include <string>

namespace shardmark {

const std::map<std::string, std::string>& kernel_texts();  // keyed by file name: "layer_norm.cu"

}  // namespace shardmark
