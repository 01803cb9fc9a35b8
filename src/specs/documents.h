// The documents of data `tokens`: which tokens may say where they begin.
#pragma once

#include "specs/model_table.h"

namespace shardmark::specs {

// Why no document of this data can begin or end with the token that its options name, for a model that takes
// such samples: one line; empty where it can.
std::string documents_reason(const Choice& data, const SampleShape& sample);

}  // namespace shardmark::specs
