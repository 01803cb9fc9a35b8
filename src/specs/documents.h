// Documents in the data source `tokens`: which tokens may mark their begin or end.
#pragma once

#include "specs/model_table.h"

namespace shardmark::specs {

// Why the tokens that the data source's options name cannot begin or end a document, for a model that takes
// such samples, in one line. Empty if they can.
std::string documents_reason(const Choice& data, const SampleShape& sample);

}  // namespace shardmark::specs
