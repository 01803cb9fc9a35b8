// A communicator for a process group of one rank. It has no transport: the output is a copy of the input,
// made in the order of the rank's own work. A layout has such groups where one of its dimensions is 1; a real
// transport would create a communicator and a stream for each, and launch operations on them.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace shardmark {

// The communicator is on the device of `all`, which this rank belongs to. Its operations are complete as soon
// as they have started.
std::unique_ptr<Communicator> make_alone(const Communicator& all);

}  // namespace shardmark
