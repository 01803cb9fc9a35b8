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
    {"run", "what launch starts on each rank; for your own mpirun or srun"},
    {"train", "train one model, with checkpoints"},
    {"collective", "one collective over message sizes, as nccl-tests does"},
    {"doctor", "is this machine, or each rank of a job, fit to measure on?"}};

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
