// The commands of cli/run/ are in the whole program only: shardmark-torch, installed beside this one. Its
// libraries (LibTorch, MPI, CUDA) take half a second to load, so this program prints help about these
// commands without it.
#pragma once

#include <string>
#include <string_view>

namespace shardmark {

struct WholeCommand {
  const char* name;
  const char* description;  // one line of help
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

// Returns nullptr if it is not such a command.
constexpr const WholeCommand* whole_command(std::string_view name) {
  for (const WholeCommand& command : kWholeCommands)
    if (name == command.name) return &command;
  return nullptr;
}

// The path of the whole program. "" if there is none (in a build for analysis only) or if this is the whole
// program.
std::string whole_program();

}  // namespace shardmark
