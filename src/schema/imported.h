// Where an imported study (src/import/) comes from. It is stored among the facts of its environment:
//   "imported": {"sources": [{"file", "hash", "format", "version", "times"}], "flags": {...},
//                "launches": [the launch of each repeat, by its number]}
#pragma once

#include <optional>
#include <string>

#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

inline constexpr const char* kImportedFact = "imported";

bool is_imported(const Environment& environment);
// Returns the launch that a record of an imported study comes from, or nothing if the study was measured by
// this program.
std::optional<std::string> imported_launch(const Environment& environment, const Record& record);
// "imported from a.log and 3 more (nccl-tests 2.18.0)", or "" if the study was measured by this program.
std::string imported_text(const Environment& environment);

}  // namespace shardmark
