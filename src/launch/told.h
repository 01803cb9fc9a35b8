// Environment variables by which launch tells something to the ranks that it starts.
#pragma once

namespace shardmark {

// How ranks report progress. With kProgressOnTerminal, lines on their stderr that begin with '\r' are the
// text of the status line of launch's terminal. With kProgressInLog there is no status line.
inline constexpr const char* kProgressVariable = "SHARDMARK_PROGRESS";
inline constexpr const char* kProgressOnTerminal = "terminal";
inline constexpr const char* kProgressInLog = "log";

// The command that resumes the study, as a user types it: `shardmark launch ... --resume`.
inline constexpr const char* kResumeVariable = "SHARDMARK_RESUME_WITH";

// When launch started the launcher of the ranks: seconds since 1970, by the clock of its node.
inline constexpr const char* kLaunchedVariable = "SHARDMARK_LAUNCHED_AT";

}  // namespace shardmark
