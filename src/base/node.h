// This node, and this process's share of it, as the kernel reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shardmark {

std::string host_name();
std::string line_of(const std::string& path);  // the first of a small file of the kernel; empty: none

std::optional<int64_t> node_memory_bytes();
std::optional<int64_t> available_memory_bytes();  // that no process holds, page cache included

// What a logical processor has done since the node started, in ticks of the kernel's clock.
struct ProcessorTicks {
  uint64_t busy = 0;    // it ran something: user, nice, system, interrupts
  uint64_t stolen = 0;  // the hypervisor gave it to another virtual machine
  uint64_t all = 0;     // both, and what it was idle or waited for a disk
};
// By number, from the text of /proc/stat. A container may show its own part of the node, or zeroes.
std::map<int64_t, ProcessorTicks> processor_ticks(const std::string& stat);

// How often a thread of this process had to leave its processor though it had work to do: another thread or
// process was given it.
int64_t involuntary_switches();

// The lowest limit of this process's control group and of all groups above it. 0: no limit.
double granted_cores();  // of processor time
int64_t granted_memory_bytes();

}  // namespace shardmark
