// What --table calls a table: its name, other words for it, and the names that older versions gave it.
#pragma once

#include <string>
#include <string_view>

namespace shardmark {

// Tables with different columns that answer one question share a name: "scaling" of the key "scaling.weak".
std::string_view name_of_table(std::string_view key);

// Whether the word means the table with this key: the key, its name or an alias of either.
bool is_called(std::string_view key, std::string_view word);

// "scaling (weak, strong, karp_flatt)": the name with all its aliases.
std::string with_other_names(std::string_view name);

// The key of the table that answers now what a table of older versions did; "" for any other word.
std::string table_now(std::string_view old_key);

}  // namespace shardmark
