// A Table value: made by every report, rendered as aligned text, Markdown, CSV or JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "schema/options.h"

namespace shardmark {

struct Cell {
  std::string text;   // as people read it
  OptionValue value;  // as programs read it, in the column's unit; nothing: not measured
  bool says_nothing() const { return value.is_nothing() || text.empty(); }  // to people
};

// What people see where the value of a column changes from one row to the next: a blank line (in text), or a
// section with a heading of its own.
enum class Starts { nothing, group, section };

struct Column {
  std::string name;
  std::string unit = {};  // "" for none
  bool numeric = true;    // aligned right
  // For people only (text, Markdown): when all rows agree, the value moves to a line above them; when no row
  // has one, or all texts are empty, the column is left out.
  bool fold = false;
  std::string group = {};  // heading over neighbouring columns: "out-of-place"
  Starts starts = Starts::nothing;
  std::string definition = {};  // what the values mean, as a sentence after the name; "" where it says so
  bool is_brief = false;        // its texts leave out some of what its values say
  bool is_optional = false;     // for people only: left out when no row has a value, or all texts are empty

  std::string full_name() const { return group.empty() ? name : group + " " + name; }  // unique in a table
  std::string heading() const { return full_name() + (unit.empty() ? "" : " (" + unit + ")"); }
};

struct Table {
  // "strategies", "scaling.weak": for CSV files and JSON. What stands before a dot is its name for --table.
  std::string key;
  std::string title;
  std::vector<std::string> notes;  // what to know of these rows, a line each
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> explanations = {};  // what columns mean, how rows are made: shown when asked for
  std::set<std::string> whole_names = {};      // of brief columns: shown with the explanations
};

// "With every option: ddp(bucket_mb=25.0); gpt2(layers=12)."
std::string whole_names_note(const std::set<std::string>& names);
// The explanations, and that note where there are names.
std::vector<std::string> all_explanations(const Table& table);
// For tables that are read one after the other: each whole name stays in the first that has it.
void say_names_once(std::vector<Table>& tables);

enum class Explanations { shown, left_out };
std::string to_text(const Table& table, Explanations explanations = Explanations::shown);
std::string to_markdown(const Table& table);
// RFC 4180: lines end in CRLF, the first names the columns with their units; empty where nothing was
// measured.
std::string to_csv(const Table& table);
// An object; its rows are objects too: a column's full name -> value. "notes" holds the explanations, too.
nlohmann::ordered_json to_json(const Table& table);

}  // namespace shardmark
