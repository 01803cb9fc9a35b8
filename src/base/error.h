// Errors: UsageError for what the user can fix (one clear line), ENSURE for what only a programmer can.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace shardmark {

// A user's mistake. The message is one line: where (file:line:column), what, what is accepted, what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A broken contract inside the program.
struct ContractError : std::logic_error {
  using std::logic_error::logic_error;
};

// A failing call of a library (MPI, NCCL, HDF5, the system).
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory ran out, by the meter's limit or by the allocator.
struct OutOfMemory : SystemError {
  using SystemError::SystemError;
};

[[noreturn]] void contract_failure(const char* expression, const std::string& message,
                                   std::source_location where = std::source_location::current());

}  // namespace shardmark

// ENSURE(condition, message): throws ContractError naming the source line. (torch owns the name CHECK.)
#define ENSURE(condition, message) \
  ((condition) ? static_cast<void>(0) : ::shardmark::contract_failure(#condition, (message)))
