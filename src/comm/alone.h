// A team of one rank as a communicator without a transport: what the rank gives is what it gets, in the order
// of its own work. A layout has such teams where a dimension of it is 1, and a transport would make a
// communicator, streams and calls for each.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace shardmark {

// On the device of `all`, of which it is one rank. Its operations are complete when they have started.
std::unique_ptr<Communicator> make_alone(const Communicator& all);

}  // namespace shardmark
