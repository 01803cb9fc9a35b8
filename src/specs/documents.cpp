// Checks the options `begin` and `end` of the data source `tokens`.
#include "specs/documents.h"

#include <fmt/format.h>

namespace shardmark::specs {

std::string documents_reason(const Choice& data, const SampleShape& sample) {
  if (data.name != "tokens") return {};
  for (const char* const option : {"begin", "end"})
    if (const auto token = data.options.at(option).get<int64_t>(); token >= sample.num_classes)
      return fmt::format(
          "{} {} is not in the model's vocabulary of {}, so that no document {}s with it; name a token of "
          "the files' tokenizer, or set the model's option 'vocabulary' above it",
          option, token, sample.num_classes, option);
  return {};
}

}  // namespace shardmark::specs
