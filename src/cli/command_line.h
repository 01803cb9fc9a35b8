// The command line of this process, as a study keeps it.
#pragma once

#include <string>

namespace shardmark {

std::string command_line();

}  // namespace shardmark
