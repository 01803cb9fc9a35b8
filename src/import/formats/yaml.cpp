// The same table as YAML: a list of maps, "- {ranks: 8, model: gpt2_xl, strategy: fsdp, batch_size: 4,
// step_s: 0.35}".
#include <algorithm>

#include "base/error.h"
#include "import/formats/table.h"
#include "plan/yaml_node.h"

namespace shardmark::imports {
namespace {

bool is_yaml(const std::string& text) {
  size_t begin = 0;
  while (begin < text.size() &&
         (text[begin] == '#' || text.find_first_not_of(" \t\r", begin) == text.find('\n', begin)))
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return text.substr(begin, 2) == "- " && text.find("ranks:") != std::string::npos;
}

// "t.yaml:3:5: " without the column of the text: people count rows.
int64_t line_of(const YamlNode& node, const Source& source) {
  return std::stoll(node.place().substr(source.name.size() + 1));
}

Contents read_yaml(const Source& source, const Given&) {
  std::vector<TableRow> rows;
  const YamlNode list = YamlNode::parse(source.text, source.name, "a table is a list of maps");
  for (const YamlNode& item : list.items()) {
    if (!item.is_map()) item.fail("expected a map of columns, got " + item.describe());
    TableRow row{line_of(item, source), {}};
    for (const YamlNode& entry : item.entries()) {
      if (entry.is_null()) continue;
      if (entry.is_map() || entry.is_list()) entry.fail("expected one value, got " + entry.describe());
      row.cells.push_back({entry.key(), entry.text(), entry.place()});
    }
    if (!row.cells.empty()) rows.push_back(std::move(row));
  }
  if (rows.empty()) throw UsageError(source.name + ": a list without a row");
  return read_table(rows);
}

const Registration<Format> registered{"yaml",
                                      {"the same table as YAML: a list of {ranks: 8, model: gpt2_xl, "
                                       "strategy: fsdp, batch_size: 4, step_s: 0.35}",
                                       is_yaml, read_yaml}};

}  // namespace
}  // namespace shardmark::imports
