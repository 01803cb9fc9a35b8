// Which source this program was built from.
#pragma once

#include <string>

namespace shardmark {

std::string version();   // of the project: "0.1.0"
std::string revision();  // git describe; empty where it was built without a repository

}  // namespace shardmark
