// The published HDF5 file of a study. Note [Study file]
//   /                    attributes: creator, schema_version, provenance of fields.h (command line, suite)
//   /environment/<name>  what the study ran on: scalars, lists of text, JSON as text
//   /points/<column>     one 1-D dataset for each column of fields.h, with a row for each point
//   /samples/<series>/   values: raw samples of all points, one after another, each ordered [rank, step]
//                        offset, length, ranks: where each point's samples are; ranks 0: none
// Every dataset has the attributes unit and description. The first 512 bytes are a seal (seal.h).
#pragma once

#include "schema/journal.h"

namespace shardmark {

// Writes the file under a temporary name beside `study`, and renames it when it is complete and durable.
// `records` is called once with a sink for the records, and returns the environment to store. Throws
// SystemError if the file cannot be written; the temporary file is then removed.
void write_published(const std::string& study, const std::function<Environment(const RecordSink&)>& records);

// Reads a published study: passes each record to `sink`, in the order of the file, and returns the
// environment. Throws UsageError if the file is missing, damaged, not a study, or of a newer schema.
Environment read_published(const std::string& study, Load load, const RecordSink& sink);
Environment read_published_environment(const std::string& study);

}  // namespace shardmark
