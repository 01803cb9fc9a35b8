// The versions of the libraries that this process runs with.
#pragma once

#include "doctor/facts.h"

namespace shardmark::machine {

// All versions except shardmark's own and the driver's.
doctor::VersionFacts versions();

}  // namespace shardmark::machine
