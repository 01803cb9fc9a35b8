// Facts about this node, and this process's share of it, as the kernel reports them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shardmark {

std::string host_name();
// The first line of a small file, as the kernel has many; empty if the file cannot be read.
std::string line_of(const std::string& path);

std::optional<int64_t> node_memory_bytes();
// Memory that no process holds. The page cache counts as available.
std::optional<int64_t> available_memory_bytes();

// What a logical processor has done since the node started, in ticks of the kernel's clock (USER_HZ).
struct ProcessorTicks {
  uint64_t busy = 0;    // running something: user, nice, system, interrupts
  uint64_t stolen = 0;  // the hypervisor ran another virtual machine
  uint64_t all = 0;     // busy + stolen + idle + waiting for a disk
};
// Parses the text of /proc/stat; the keys are processor numbers. A container may show only its own
// processors, or zeroes.
std::map<int64_t, ProcessorTicks> processor_ticks(const std::string& stat);

// How many times the scheduler took a processor from a thread of this process that still had work to do.
// Counts all threads since the process started.
int64_t involuntary_switches();

// The lowest limit of this process's control group and of all groups above it; 0 if there is no limit.
double granted_cores();  // processor time, in cores
int64_t granted_memory_bytes();

}  // namespace shardmark
