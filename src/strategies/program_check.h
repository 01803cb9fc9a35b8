// Checks whether a program is valid, whatever it computes.
#pragma once

#include <string>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Describes what is wrong, with the strategy's name and the instruction; empty if nothing is. A program is
// invalid if a wait is for a call that has not started; a call starts again before anyone has waited for it;
// memory is written while a call in flight reads or writes it, or read while one writes it; a block computes
// with a group that no buffer is bound to, or whose slot holds another group. Two steps are checked, because
// calls of one may end in the next.
std::string wrong_with(const Program& program, const ModelTable& model);

// How the calls of two ranks differ: in number, kind, payload, process group or root. Empty if they do not.
std::string calls_that_differ(const Program& program, const Program& other);

}  // namespace shardmark::strategies
