// Records and environments as JSON, by the field table: the content of journal lines and of `--json` output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "schema/environment.h"
#include "schema/options.h"
#include "schema/record.h"

namespace shardmark {

// Maps column names to values, in the order of the file. Samples are not included. NaN becomes null;
// infinities become "inf" and "-inf".
nlohmann::ordered_json to_json(const Record& record);
// Missing keys keep the member's default, and unknown keys are ignored. Throws UsageError if a value has the
// wrong type.
Record record_from_json(const nlohmann::ordered_json& json);

// NaN becomes null, and infinities become "inf" and "-inf", because JSON has no numbers for them.
nlohmann::ordered_json json_of(double number);

nlohmann::ordered_json to_json(const Environment& environment);
Environment environment_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json to_json(const OptionValue& value);
nlohmann::ordered_json to_json(const Options& options);  // an object
// A value that is not an integer, number, boolean or text (a list, an object) becomes its JSON text.
OptionValue option_value(const nlohmann::ordered_json& json);

// Writes one line. Bytes that are not valid UTF-8, which an error message may contain, are replaced.
std::string dump_line(const nlohmann::ordered_json& json);

// Throws nlohmann's type_error if the value is not an integer.
int64_t whole_number(const nlohmann::ordered_json& json);

}  // namespace shardmark
