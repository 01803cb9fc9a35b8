// Helpers that write programs by hand.
#pragma once

#include "strategies/program.h"

namespace shardmark {

inline void add(strategies::Program& program, strategies::Instruction::What what, int64_t index = 0) {
  program.instructions.push_back({what, index});
}

inline int64_t start(strategies::Program& program, strategies::CollectiveCall call) {
  program.calls.push_back(std::move(call));
  add(program, strategies::Instruction::What::start, std::ssize(program.calls) - 1);
  return std::ssize(program.calls) - 1;
}

}  // namespace shardmark
