// A registry from names to entries, each with a one-line description. Asking for an unknown name throws a
// UsageError that lists the known ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace shardmark {

// Entry must have a member `std::string description`. There is one registry per Entry type. A file registers
// its entry at its end; for example, ddp.cpp has
//     const Registration<Strategy> registered{"ddp", {"...", kOptions, write, paper}};
template <class Entry>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& name, Entry entry) {
    ENSURE(entries_.emplace(name, std::move(entry)).second, "registered twice: " + name);
  }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // `what` is the singular noun for the message, such as "strategy".
  const Entry& get(const std::string& name, const std::string& what) const {
    auto found = entries_.find(name);
    if (found == entries_.end())
      throw UsageError("unknown " + what + " '" + name + "'; known: " + joined_names());
    return found->second;
  }
  std::string joined_names() const {
    std::string names;
    for (const auto& [name, entry] : entries_) names += (names.empty() ? "" : ", ") + name;
    return names;
  }

 private:
  std::map<std::string, Entry> entries_;
};

template <class Entry>
struct Registration {
  Registration(const std::string& name, Entry entry) {
    Registry<Entry>::instance().add(name, std::move(entry));
  }
};

}  // namespace shardmark
