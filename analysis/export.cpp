// Goes over the field table; samples are streamed, as they may be many.
#include "analysis/export.h"

#include <fmt/format.h>

#include <cmath>

#include "schema/columns.h"
#include "schema/fields.h"
#include "schema/json.h"
#include "schema/version.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

Json fields_json() {
  Json fields = Json::object();
  for (const RecordColumn& column : make_columns())
    fields[column.name] = {{"unit", column.unit}, {"description", column.description}};
  return fields;
}

Json series_json() {
  Json series = Json::object();
  for (const SeriesInfo& info : kSeries)
    series[std::string(info.name)] = {{"unit", info.unit}, {"description", info.description}};
  return series;
}

// [[of rank 0], [of rank 1] ...]; as in columns, a NaN is null and infinities are texts.
Json rows_of(const Series& series) {
  Json rows = Json::array();
  for (int64_t row = 0; row < series.rows; ++row) {
    Json values = Json::array();
    for (int64_t column = 0; column < series.columns; ++column)
      values.push_back(json_of(series.at(row, column)));
    rows.push_back(std::move(values));
  }
  return rows;
}

Json point_json(const Record& record) {
  Json point = to_json(record);
  Json samples = Json::object();
  for (const Series& series : record.samples) samples[series.name] = rows_of(series);
  point["samples"] = std::move(samples);
  return point;
}

// Cells of an export are for programs alone, so they have a value and no text. Lists and objects become
// JSON in one line.
Cell csv_cell(const Json& value) {
  if (value.is_null()) return {"", nullptr};
  return {"", value.is_structured() ? OptionValue(dump_line(value)) : option_value(value)};
}

}  // namespace

Table points_export(const StudyData& study) {
  Table table{"points", "", {}, {}, {}};
  for (const RecordColumn& column : make_columns()) table.columns.push_back({column.name, ""});
  for (const Record& record : study.records) {
    std::vector<Cell> row;
    const Json columns = to_json(record);
    for (const auto& [name, value] : columns.items()) row.push_back(csv_cell(value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table fields_export() {
  Table table{"fields", "", {}, {{"place", ""}, {"name", ""}, {"unit", ""}, {"description", ""}}, {}};
  const auto add = [&](const char* place, const Json& fields) {
    for (const auto& [name, field] : fields.items())
      table.rows.push_back(
          {csv_cell(place), csv_cell(name), csv_cell(field["unit"]), csv_cell(field["description"])});
  };
  add("points", fields_json());
  add("samples", series_json());
  return table;
}

Table environment_export(const StudyData& study) {
  Table table{"environment", "", {}, {{"name", ""}, {"value", ""}}, {}};
  const Json environment = to_json(study.environment);
  for (const auto& [name, value] : environment.items())
    table.rows.push_back({csv_cell(name), csv_cell(value)});
  return table;
}

void write_samples_csv(std::ostream& out, const StudyData& study) {
  out << "id,series,rank,step,value\r\n";
  for (const Record& record : study.records)
    for (const Series& series : record.samples)
      for (int64_t row = 0; row < series.rows; ++row)
        for (int64_t column = 0; column < series.columns; ++column) {
          const double value = series.at(row, column);
          out << fmt::format("{},{},{},{},{}\r\n", record.id, series.name, row, column,
                             std::isnan(value) ? "" : fmt::format("{}", value));
        }
}

void write_json(std::ostream& out, const StudyData& study) {
  out << "{\"schema\":" << Json(schema_version()) << ",\n\"fields\":" << dump_line(fields_json())
      << ",\n\"series\":" << dump_line(series_json())
      << ",\n\"environment\":" << dump_line(to_json(study.environment)) << ",\n\"points\":[";
  const char* separator = "\n";
  for (const Record& record : study.records) {
    out << separator << dump_line(point_json(record));
    separator = ",\n";
  }
  out << "\n]}\n";
}

}  // namespace shardmark
