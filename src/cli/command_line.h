// The command line of this process, as a study keeps it.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

std::string own_program();  // the path of this program's file; "" where the system does not tell
std::vector<std::string> command_words();
std::string command_line();  // to be typed into a shell

// The command line that started this rank if mpirun did: of the process that made this one. Empty where
// another did, or on another node than mpirun's.
std::vector<std::string> mpirun_words();

}  // namespace shardmark
