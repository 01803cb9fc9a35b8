// A message about an option's text begins with the option.
#pragma once

#include <string>

#include "base/error.h"

namespace shardmark {

// parse(), whose UsageErrors get the option's name before what they say of its text.
template <class Parse>
auto parsed(const std::string& option, Parse parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw UsageError(option + ": " + error.what());
  }
}

}  // namespace shardmark
