// What a command or flag is called here that had another name in an earlier version, or that users of
// nccl-tests and torchrun type by habit.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// Returns one line that says what does it, or "" if nothing is known of the word.
std::string instead_of_command(const std::string& word);
// The same for the first of these flags that something is known of. `words` is the whole command line, which
// has the values of flags.
std::string instead_of_flag(const std::string& command, const std::vector<std::string>& unknown,
                            const std::vector<std::string>& words);

}  // namespace shardmark
