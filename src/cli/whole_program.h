// The commands of cli/run/, which only the whole program has: shardmark-torch, beside this one. Its libraries
// (LibTorch, MPI, CUDA) take half a second to load, so this one tells of them without it.
#pragma once

#include <string>
#include <string_view>

namespace shardmark {

struct WholeCommand {
  const char* name;
  const char* description;  // a line of help
};
inline constexpr WholeCommand kWholeCommands[] = {
    {"run", "run a suite on all ranks: mpirun -n 8 shardmark run suites/x.yaml -o x.h5"},
    {"train", "train one model: mpirun -n 2 shardmark train --model gpt2 --strategy zero3 --steps 100"},
    {"collective",
     "measure one collective over message sizes, as nccl-tests does: mpirun -n 2 shardmark collective "
     "all_reduce -b 8 -e 128M -f 2"},
    {"doctor",
     "check this machine, or all ranks of a job, for problems that distort measurements: mpirun -n 8 "
     "shardmark doctor"}};

// nullptr: it is no such command.
constexpr const WholeCommand* whole_command(std::string_view name) {
  for (const WholeCommand& command : kWholeCommands)
    if (name == command.name) return &command;
  return nullptr;
}

// The whole program's path. "" where there is none: in a build of the analysis alone, and in that program
// itself.
std::string whole_program();

}  // namespace shardmark
