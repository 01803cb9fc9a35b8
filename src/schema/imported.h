// What a study that was imported (src/import/) says of where it comes from, among the facts of its
// environment:
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
// The launch that a record of an imported study comes from; nothing where it was measured here.
std::optional<std::string> imported_launch(const Environment& environment, const Record& record);
// "imported from a.log and 3 more (nccl-tests 2.18.0)"; "" where it was measured here.
std::string imported_text(const Environment& environment);

}  // namespace shardmark
