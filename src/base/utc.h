// Times of day as studies hold them: ISO 8601 in UTC, "2026-01-31T12:00:00Z", which sort as text.
#pragma once

#include <ctime>
#include <string>

namespace shardmark {

std::string utc_text(std::time_t time);
std::string utc_now();

}  // namespace shardmark
