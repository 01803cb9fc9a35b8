#include "base/clock.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

namespace shardmark {

double process_age_s() {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::ifstream file("/proc/self/stat");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  // The name of the process, which may hold blanks, ends with the last parenthesis. The start is the 20th
  // field behind it, in ticks since the boot: man proc_pid_stat.
  const size_t name_end = all.rfind(')');
  if (name_end == std::string::npos) return kNone;
  std::istringstream fields(all.substr(name_end + 1));
  std::string start;
  for (int field = 0; field < 20; ++field) fields >> start;
  timespec now = {};
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (!fields || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0 || !(ticks > 0)) return kNone;
  const double age =
      static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - std::stod(start) / ticks;
  return age >= 0 ? age : 0;
}

}  // namespace shardmark
