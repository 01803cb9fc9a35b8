// Formats the message of a ContractError.
#include "base/error.h"

namespace shardmark {

void contract_failure(const char* expression, const std::string& message, std::source_location where) {
  throw ContractError(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " + message +
                      " (" + expression + ")");
}

}  // namespace shardmark
