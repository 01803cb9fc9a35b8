// Aliases of a table beside its key, for --table.
#pragma once

#include <string>
#include <string_view>

namespace shardmark {

// Whether the table with this key is meant by the word: its key, an alias, or "all_reduce" and
// "collectives" for the tables of all rank counts.
bool is_called(std::string_view key, std::string_view word);

// "scaling_laws (laws, amdahl, gustafson, usl)": the key with its other names.
std::string with_other_names(const std::string& key);

}  // namespace shardmark
