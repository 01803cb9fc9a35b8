// Compares two readings of /proc/stat.
#include "doctor/machine/load.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/node.h"

namespace shardmark::machine {
namespace {

std::map<int64_t, ProcessorTicks> read_ticks() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();
  return processor_ticks(text.str());
}

double own_processor_s() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

std::vector<doctor::ProcessorUse> use_between(const std::map<int64_t, ProcessorTicks>& before,
                                              const std::map<int64_t, ProcessorTicks>& after) {
  std::vector<doctor::ProcessorUse> all;
  for (const auto& [number, end] : after) {
    const auto begin = before.find(number);
    // An idle processor counts ticks, too. A processor without any is not really shown.
    if (begin == before.end() || end.all <= begin->second.all) continue;
    const auto ticks = static_cast<double>(end.all - begin->second.all);
    const auto share = [&](uint64_t from, uint64_t to) {
      return to <= from ? 0 : std::min(static_cast<double>(to - from) / ticks, 1.0);
    };
    all.push_back({number, share(begin->second.busy, end.busy), share(begin->second.stolen, end.stolen)});
  }
  return all;
}

}  // namespace

doctor::LoadFacts measure_load(const HostGroup& world, const MpiSession& session) {
  constexpr auto kWindow = std::chrono::milliseconds(500);
  doctor::LoadFacts facts;
  world.sleep_barrier();  // from here on all ranks sleep
  const bool measures = session.local_rank() == 0;
  if (measures) std::istringstream(line_of("/proc/loadavg")) >> facts.average;
  const auto before = measures ? read_ticks() : std::map<int64_t, ProcessorTicks>();
  const double begin = now_s(), own_before = own_processor_s();
  std::this_thread::sleep_for(kWindow);
  facts.own = (own_processor_s() - own_before) / (now_s() - begin);
  if (measures) facts.processors = use_between(before, read_ticks());
  return facts;
}

}  // namespace shardmark::machine
