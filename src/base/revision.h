// The version and the source revision that this program was built from.
#pragma once

#include <string>

namespace shardmark {

std::string version();   // the project's version: "0.1.0"
std::string revision();  // output of git describe; empty if built outside a repository

}  // namespace shardmark
