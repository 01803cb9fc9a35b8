// Times as studies store them: ISO 8601 in UTC, "2026-01-31T12:00:00Z", so that sorting as text sorts by
// time.
#pragma once

#include <ctime>
#include <string>

namespace shardmark {

std::string utc_text(std::time_t time);
std::string utc_now();

}  // namespace shardmark
