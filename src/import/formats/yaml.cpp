// Reads the same table as YAML or JSON: a list of maps, "- {ranks: 8, model: gpt2_xl, strategy: fsdp,
// batch_size: 4, step_s: 0.35}".
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "import/formats/table.h"
#include "import/lines.h"
#include "plan/yaml_node.h"

namespace shardmark::imports::yaml_file {
namespace {

// The text from the first line on that is not a comment, not blank and not "---".
std::string_view from_first_line(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] != '#' && line[first] != '%' &&
        !line.starts_with("---"))
      return text.substr(begin + first);
    begin = end + 1;
  }
  return "";
}

// Whether the text has a key "ranks", in any case.
bool has_ranks(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("ranks:") != std::string::npos || lower.find("\"ranks\"") != std::string::npos;
}

bool is_list(std::string_view begin) {
  if (begin.starts_with("- ")) return true;
  const size_t item = begin.starts_with("[") ? begin.find_first_not_of(" \t\n", 1) : std::string_view::npos;
  return item != std::string_view::npos && begin[item] == '{';
}

// JSON is YAML, too: a list of objects, or one object per line. In the latter case each line becomes an item
// of a list.
bool is_json_lines(std::string_view begin) {
  const std::string_view line = begin.substr(0, std::min(begin.find('\n'), begin.size()));
  return line.starts_with("{") && line.find('}') != std::string_view::npos && has_ranks(line);
}

bool is_yaml(const std::string& text) {
  const std::string_view begin = from_first_line(text);
  return is_json_lines(begin) || (is_list(begin) && has_ranks(begin));
}

Source as_list(const Source& source) {
  if (!is_json_lines(from_first_line(source.text))) return source;
  Source list{source.name, ""};
  for_each_line(source, [&](const Line& line) {
    list.text += (line.text.starts_with("{") ? "- " : "") + std::string(line.text) + "\n";
  });
  return list;
}

// The line of a place such as "t.yaml:3:5: ".
int64_t line_of(const YamlNode& node, const Source& source) {
  return std::stoll(node.place().substr(source.name.size() + 1));
}

Contents read_yaml(const Source& source, const Given&) {
  constexpr size_t kMostBytes = 32 << 20;  // the parsed tree is fifty times as large
  if (source.text.size() > kMostBytes)
    throw UsageError(fmt::format("{}: a table of YAML or JSON has at most {}; save it as CSV", source.name,
                                 format_bytes(static_cast<double>(kMostBytes))));
  std::vector<TableRow> rows;
  const YamlNode list = YamlNode::parse(as_list(source).text, source.name, "a table is a list of maps");
  for (const YamlNode& item : list.items()) {
    if (!item.is_map()) item.fail("expected a map of columns, got " + item.describe());
    TableRow row{line_of(item, source), {}};
    for (const YamlNode& entry : item.entries()) {
      if (entry.is_null()) continue;
      if (entry.is_map() || entry.is_list()) entry.fail("expected one value, got " + entry.describe());
      row.cells.push_back({column_of(entry.key()), entry.text(), entry.place()});
    }
    if (!row.cells.empty()) rows.push_back(std::move(row));
    require_few(std::ssize(rows), source);
  }
  if (rows.empty()) throw UsageError(source.name + ": a list without a row");
  return read_table(rows);
}

const Registration<Format> registered{"yaml",
                                      {"the same table as YAML or JSON: a list of {ranks: 8, model: gpt2_xl, "
                                       "strategy: fsdp, batch_size: 4, step_s: 0.35}",
                                       {},
                                       is_yaml,
                                       read_yaml}};

}  // namespace
}  // namespace shardmark::imports::yaml_file
