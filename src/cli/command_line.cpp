// See command_line.h.
#include "cli/command_line.h"

#include <algorithm>
#include <fstream>

namespace shardmark {

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace shardmark
