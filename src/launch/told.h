// What launch tells the ranks that it starts, by environment variables.
#pragma once

namespace shardmark {

// An environment variable of the ranks. With kProgressOnTerminal, lines on their stderr that begin with '\r'
// belong into the line at the end of launch's terminal that is written anew; with another value there is
// none.
inline constexpr const char* kProgressVariable = "SHARDMARK_PROGRESS";
inline constexpr const char* kProgressOnTerminal = "terminal";
inline constexpr const char* kProgressInLog = "log";

// The command that goes on with the study, as a user types it: `shardmark launch ... --resume`.
inline constexpr const char* kResumeVariable = "SHARDMARK_RESUME_WITH";

}  // namespace shardmark
