// What the launcher's environment variables promise.
#pragma once

namespace shardmark {

// Ranks that the launcher says it started; 0: it says nothing.
int promised_ranks();

}  // namespace shardmark
