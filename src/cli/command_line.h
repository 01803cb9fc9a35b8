// The command line of this process, as a study stores it.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

std::string own_program();  // path of this program's file; "" if unknown
std::vector<std::string> command_words();
std::string command_line();  // quoted, to be typed into a shell

// The command line of mpirun if it started this rank: that of the parent process. Empty if another launcher
// did, or if mpirun runs on another node.
std::vector<std::string> mpirun_words();

}  // namespace shardmark
