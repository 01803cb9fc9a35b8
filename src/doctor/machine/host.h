// Describes this node from /proc, the control group and the file system.
#pragma once

#include <string>

#include "doctor/facts.h"

namespace shardmark::machine {

// The boot id of the running kernel, which is the same in all its containers and namespaces.
std::string kernel_id();

// `output` is the directory of studies; empty if this rank writes none.
doctor::HostFacts host_facts(const std::string& output);

}  // namespace shardmark::machine
