// The text of a file as its program wrote it, without what editors, terminals and launchers add. All formats
// are read from this.
#pragma once

#include <string>

#include "import/source.h"

namespace shardmark::imports {

// Converts to UTF-8 with line feeds as line ends, and removes the byte order mark, colours and the prefixes
// of launchers. Lines keep their numbers. Note [Prefixes of launchers] says which prefixes are found.
Source plain(const Source& given);

// For a text that no format recognises: what it seems to be, and what the user can do. "" if there is no
// guess.
std::string met_instead(const Source& source);

}  // namespace shardmark::imports
