// Versions of what this process runs with.
#pragma once

#include "doctor/facts.h"

namespace shardmark::machine {

// All but shardmark's own and the driver's.
doctor::VersionFacts versions();

}  // namespace shardmark::machine
