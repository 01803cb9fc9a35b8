// What makes a program invalid, whatever it computes.
#pragma once

#include <string>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// By the strategy's name and the instruction; empty where nothing is wrong. Wrong are: a wait for a call that
// has not started, a call that starts again while it is in flight, since nobody has waited for it; memory
// that is written while a call in flight reads or writes it, or read while one writes it; a block that
// computes on a group that is nowhere, or whose slot holds another. Two steps are checked, as calls may
// reach from one into the next.
std::string wrong_with(const Program& program, const ModelTable& model);

// How the calls of two ranks differ: in number, kind, payload, team or root. Empty: not at all.
std::string calls_that_differ(const Program& program, const Program& other);

}  // namespace shardmark::strategies
