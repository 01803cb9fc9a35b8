// Reads the facts that an import left in a study. The file may come from anywhere: a value that does not have
// the expected form counts as absent.
#include "schema/imported.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

const Json* part_of_import(const Environment& environment, const char* key) {
  const auto imported = (*environment.facts).find(kImportedFact);
  if (imported == (*environment.facts).end() || !imported->is_object()) return nullptr;
  const auto part = imported->find(key);
  return part == imported->end() || !part->is_array() ? nullptr : &*part;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

}  // namespace

bool is_imported(const Environment& environment) {
  return part_of_import(environment, "launches") != nullptr;
}

// An import numbers repeats over all launches, so each repeat belongs to one launch, and the list is indexed
// by it.
std::optional<std::string> imported_launch(const Environment& environment, const Record& record) {
  const Json* launches = part_of_import(environment, "launches");
  const auto repeat = static_cast<size_t>(record.point.repeat);
  if (launches == nullptr || repeat >= launches->size() || !launches->at(repeat).is_string())
    return std::nullopt;
  return launches->at(repeat).get<std::string>();
}

std::string imported_text(const Environment& environment) {
  const Json* sources = part_of_import(environment, "sources");
  if (sources == nullptr || sources->empty()) return "";
  const Json& first = sources->front();
  const std::string version = text_of(first, "version");
  return fmt::format("imported from {}{} ({}{})", text_of(first, "file"),
                     sources->size() == 1 ? "" : fmt::format(" and {} more", sources->size() - 1),
                     text_of(first, "format"), version.empty() ? "" : " " + version);
}

}  // namespace shardmark
