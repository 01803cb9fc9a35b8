// A table of the candidates of options. CLI11's options have no member that could hold them.
#include "cli/candidates.h"

#include <map>
#include <utility>

namespace shardmark {
namespace {

std::map<const CLI::Option*, Candidates>& offers() {
  static std::map<const CLI::Option*, Candidates> all;
  return all;
}

}  // namespace

CLI::Option* offer(CLI::Option* option, Candidates candidates) {
  offers()[option] = std::move(candidates);
  return option;
}

const Candidates* offered(const CLI::Option* option) {
  const auto found = offers().find(option);
  return found == offers().end() ? nullptr : &found->second;
}

}  // namespace shardmark
