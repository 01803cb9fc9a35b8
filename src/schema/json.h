// Records and environments as JSON, by the field table: what a journal line holds, and what `--json` may
// print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "schema/environment.h"
#include "schema/options.h"
#include "schema/record.h"

namespace shardmark {

// Column name -> value, in file order; the samples are not part of it. NaN is null, infinities are "inf" and
// "-inf".
nlohmann::ordered_json to_json(const Record& record);
// Absent keys keep the member's default, unknown ones are ignored. Throws UsageError on a value of the wrong
// type.
Record record_from_json(const nlohmann::ordered_json& json);

// A NaN is null, infinities are "inf" and "-inf": JSON has no numbers for them.
nlohmann::ordered_json json_of(double number);

nlohmann::ordered_json to_json(const Environment& environment);
Environment environment_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json to_json(const OptionValue& value);
nlohmann::ordered_json to_json(const Options& options);  // an object
// Anything but an integer, number, boolean or text becomes the text of it.
OptionValue option_value(const nlohmann::ordered_json& json);

// One line; bytes that are no UTF-8 (a message may hold any) are replaced.
std::string dump_line(const nlohmann::ordered_json& json);

// Throws nlohmann's type_error where it is none.
int64_t whole_number(const nlohmann::ordered_json& json);

}  // namespace shardmark
