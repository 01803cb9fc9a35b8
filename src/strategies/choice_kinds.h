// What there is to choose from on each axis whose values are choices.
#pragma once

#include <string>

#include "schema/choice.h"

namespace shardmark {

const ChoiceKind& model_kind();
const ChoiceKind& data_kind();
const ChoiceKind& strategy_kind();
const ChoiceKind& optimizer_kind();
const ChoiceKind& schedule_kind();
const ChoiceKind& transport_kind();
const ChoiceKind& parts_kind();
const ChoiceKind& beside_kind();

// Of an axis of choices, by its key (schema/axes.h).
const ChoiceKind& kind_of(const std::string& axis);

// A study may be of a program that has other choices, or other options of them: none of these throws.
// The options that a choice on this axis has; none where it is not known.
const OptionTable& known_options(const std::string& axis, const Choice& choice);
}  // namespace shardmark
