// Texts such as "clip_norm=1", several of which a flag takes: --set of run, plan and train, --failures of
// report and predict.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {

struct KeyValue {
  std::string key, value;
};

// Throws a UsageError that begins with the flag and names what is accepted.
inline KeyValue key_value(const std::string& text, const std::string& flag,
                          const std::vector<std::string>& accepted) {
  const size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  const bool is_known = std::find(accepted.begin(), accepted.end(), key) != accepted.end();
  if (equals != std::string::npos && !is_known)
    throw UsageError(flag + ": unknown key " + quoted_line(key) + "; " + accepted_words(key, accepted));
  if (equals == std::string::npos || equals + 1 == text.size())
    throw UsageError(flag + ": expected " + (is_known ? key : "KEY") + "=VALUE, got " + quoted_line(text));
  return {key, text.substr(equals + 1)};
}

}  // namespace shardmark
