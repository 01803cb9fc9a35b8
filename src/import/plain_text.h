// The text of a file as its program wrote it: without what editors, terminals and launchers put before and
// around it. Every format is read from this.
#pragma once

#include <string>

#include "import/source.h"

namespace shardmark::imports {

// As UTF-8 with line feeds alone, without a byte order mark, colours and the prefixes of launchers. Lines
// keep their numbers. Note [Prefixes of launchers] says which prefixes are found.
Source plain(const Source& given);

// Why nothing can be read of a text that no format recognises: what it seems to be, and what to do; "" where
// nothing is known.
std::string met_instead(const Source& source);

}  // namespace shardmark::imports
