// Puts the name of an option in front of error messages about its value.
#pragma once

#include <string>

#include "base/error.h"

namespace shardmark {

// Returns parse(). If that throws a UsageError, the option's name is put in front of the message.
template <class Parse>
auto parsed(const std::string& option, Parse parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw UsageError(option + ": " + error.what());
  }
}

}  // namespace shardmark
