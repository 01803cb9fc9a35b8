// What laws/ says of a choice that a study holds. A study may come from a program that knows other models and
// strategies, or other options of them, so nothing here throws.
#pragma once

#include <optional>

#include "laws/model_table.h"

namespace shardmark {

std::optional<laws::ModelTable> known_table(const Choice& model);
const OptionTable& known_options(const Choice& strategy);  // empty when it is not known

}  // namespace shardmark
