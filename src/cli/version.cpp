// The versions of the program, of the libraries in every build, and of the libraries that were registered.
#include "cli/version.h"

#include <fmt/format.h>

#include "base/revision.h"
#include "schema/hdf5.h"

namespace shardmark {

std::string version_text() {
  std::vector<std::pair<std::string, std::string>> libraries = {
      {"HDF5", h5::library_version()},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)}};
  for (const auto& [name, entry] : Registry<LibrariesEntry>::instance().entries())
    for (auto& library : entry.versions()) libraries.push_back(std::move(library));
  std::string text = "shardmark " + version();
  text += revision().empty() ? "\n" : " (revision " + revision() + ")\n";
  for (const auto& [name, found] : libraries)
    if (!found.empty()) text += fmt::format("  {:<9} {}\n", name, found);
  return text;
}

}  // namespace shardmark
