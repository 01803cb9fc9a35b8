// A training run in YAML as flags.
#pragma once

#include <string>

namespace shardmark {

struct TrainFlags;

// What the file says instead of what the flags say. UsageError: the file's mistake, with its place.
void read_train_file(const std::string& path, TrainFlags& flags);

}  // namespace shardmark
