// The kinds of errors. UsageError is for what the user can fix and becomes one clear line; ENSURE is for what
// only a programmer can fix.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace shardmark {

// A mistake of the user. The message is one line that says where it is (file:line:column), what is wrong,
// what is accepted, and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A contract inside the program was broken: a bug of ours.
struct ContractError : std::logic_error {
  using std::logic_error::logic_error;
};

// A call of a library failed (MPI, NCCL, HDF5, the operating system).
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory ran out: the meter's limit was reached, or the allocator failed.
struct OutOfMemory : SystemError {
  using SystemError::SystemError;
};

[[noreturn]] void contract_failure(const char* expression, const std::string& message,
                                   std::source_location where = std::source_location::current());

}  // namespace shardmark

// ENSURE(condition, message) throws a ContractError that names the source line. It is not called CHECK
// because torch defines a macro of that name.
#define ENSURE(condition, message) \
  ((condition) ? static_cast<void>(0) : ::shardmark::contract_failure(#condition, (message)))
