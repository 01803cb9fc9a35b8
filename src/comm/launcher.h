// What the launcher's environment variables say.
#pragma once

namespace shardmark {

// The number of ranks that the launcher says it started; 0 if it says nothing.
int promised_ranks();

}  // namespace shardmark
