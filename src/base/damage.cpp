// Takes the rank with the most damaged partners, leaves out what it explains, and begins again.
#include "base/damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace shardmark {
namespace {

// The damage that a rank explains if it is faulty as a sender, or if it is faulty as a receiver.
struct Explained {
  int64_t partners = 0, elements = 0;
  const Damage* last = nullptr;
};

}  // namespace

std::vector<Blamed> blamed_for(std::vector<Damage> damage) {
  std::vector<Blamed> blamed;
  while (!damage.empty()) {
    std::map<std::pair<int64_t, bool>, Explained> parts;  // by rank, and whether it sent
    for (const Damage& one : damage)
      for (const bool sent : {true, false}) {
        Explained& part = parts[{sent ? one.sender : one.receiver, sent}];
        ++part.partners;
        part.elements += one.elements;
        part.last = &one;
      }
    // If several explain as many partners, the lowest rank is taken, and as a receiver before as a sender:
    // this is the order of the map.
    const auto most = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return a.second.partners < b.second.partners;
    });
    const auto [rank, sent] = most->first;
    const Explained part = most->second;
    const std::string elements = counted(part.elements, "element");
    if (part.partners > 1) {
      blamed.push_back({rank, -1,
                        sent ? fmt::format("{} of what rank {} sent to {} ranks arrived with another value",
                                           elements, rank, part.partners)
                             : fmt::format("{} of what {} ranks sent to rank {} arrived with another value",
                                           elements, part.partners, rank)});
      std::erase_if(damage, [&, rank = rank, sent = sent](const Damage& one) {
        return (sent ? one.sender : one.receiver) == rank;
      });
      continue;
    }
    // No rank has two damaged partners any more, so this pair stands alone. Nothing tells which of its ranks
    // is faulty, so both are named.
    const Damage pair = *part.last;
    const std::string words = fmt::format(
        "{} of what rank {} sent to rank {} arrived with another value, and either of them may be "
        "faulty",
        elements, pair.sender, pair.receiver);
    blamed.push_back({pair.sender, pair.receiver, words});
    blamed.push_back({pair.receiver, pair.sender, words});
    std::erase_if(damage, [&](const Damage& one) {
      return one.sender == pair.sender && one.receiver == pair.receiver;
    });
  }
  return blamed;
}

}  // namespace shardmark
