// What ranks may do while a collective runs: the values of the axis `beside`, with their options.
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"

namespace shardmark::strategies {

struct BesideSpec {
  std::string description;
  OptionTable options = {};
};
const std::map<std::string, BesideSpec>& beside_specs();  // alone, matmul, copy, block, collective

}  // namespace shardmark::strategies
