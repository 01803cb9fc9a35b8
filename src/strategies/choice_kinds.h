// The choices that exist on each axis: models, data, strategies, optimizers and so on, with their options.
#pragma once

#include <string>

#include "schema/choice.h"

namespace shardmark {

const ChoiceKind& model_kind();
const ChoiceKind& data_kind();
const ChoiceKind& strategy_kind();
const ChoiceKind& optimizer_kind();
const ChoiceKind& lr_scheduler_kind();
const ChoiceKind& transport_kind();
const ChoiceKind& save_kind();
const ChoiceKind& parts_kind();
const ChoiceKind& beside_kind();

// The kind of choice on an axis, by the axis's key (schema/axes.h).
const ChoiceKind& kind_of(const std::string& axis);

// The options that a choice on this axis has, or none if the choice is unknown. It does not throw, because a
// study may come from another version of the program, with other choices or other options.
const OptionTable& known_options(const std::string& axis, const Choice& choice);
}  // namespace shardmark
