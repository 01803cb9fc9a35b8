// The published HDF5 file of a study. Note [Study file]
//   /                    attributes: creator, schema_version, provenance of fields.h (command line, suite)
//   /environment/<name>  what it ran on: scalars, lists of text, JSON texts
//   /points/<column>     one 1-D dataset for each column of fields.h, a row for each point
//   /samples/<series>/   values: raw samples of all points, one after another, each ordered [rank, step]
//                        offset, length, ranks: of each point in values; ranks 0: the point has none
// Every dataset has the attributes unit and description. The first 512 bytes are a seal (seal.h).
#pragma once

#include "schema/journal.h"

namespace shardmark {

// Writes the file beside `study` and renames it when it is whole and durable. `records` is called once; the
// environment of its result is stored. SystemError: it cannot be written; nothing is left of it.
void write_published(const std::string& study, const std::function<Environment(const RecordSink&)>& records);

// Reads one. UsageError: missing, damaged, no study, a newer schema. The environment is known before the
// first record.
Environment read_published(const std::string& study, Load load, const RecordSink& sink);
Environment read_published_environment(const std::string& study);

}  // namespace shardmark
