// What laws/ says of a choice that a study holds. A study may come from a program that knows other models and
// strategies, or other options of them, so nothing here throws.
#pragma once

#include <optional>

#include "laws/model_table.h"

namespace shardmark {

std::optional<laws::ModelTable> known_table(const Choice& model);
std::optional<int64_t> known_bytes(const std::string& dtype);             // of an element of a collective
std::optional<int64_t> known_master_bytes(const std::string& precision);  // of a weight
const OptionTable& known_options(const Choice& strategy);                 // empty when it is not known

}  // namespace shardmark
