// This node, as /proc, the control group and the file system describe it.
#pragma once

#include <string>

#include "doctor/facts.h"

namespace shardmark::machine {

std::string kernel_id();  // of the running kernel: the same in all its containers and namespaces

// output: the directory where studies go; empty where this rank writes none.
doctor::HostFacts host_facts(const std::string& output);

}  // namespace shardmark::machine
