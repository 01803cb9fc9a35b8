// How a member of a record is stored in a file: as text, integer, number or flag. The journal and the HDF5
// file share these conversions.
#pragma once

#include <cstdint>
#include <string>

#include "schema/record.h"

namespace shardmark {

enum class Flag : int8_t { no = 0, yes = 1 };  // one byte, as h5py and pandas store a bool

inline const std::string& to_stored(const std::string& text) { return text; }
inline int64_t to_stored(int64_t number) { return number; }
inline double to_stored(double number) { return number; }
inline Flag to_stored(bool flag) { return flag ? Flag::yes : Flag::no; }
inline std::string to_stored(Outcome outcome) { return std::string(to_text(outcome)); }
inline std::string to_stored(const Choice& choice) { return to_text(choice); }

inline void from_stored(const std::string& text, std::string& member) { member = text; }
inline void from_stored(int64_t number, int64_t& member) { member = number; }
inline void from_stored(double number, double& member) { member = number; }
inline void from_stored(Flag flag, bool& member) { member = flag == Flag::yes; }
inline void from_stored(const std::string& text, Outcome& member) { member = outcome_from_text(text); }
// Choices that a point does not use have no name, and are stored as empty text.
inline void from_stored(const std::string& text, Choice& member) {
  member = text.empty() ? Choice{} : choice_or_name(text);
}

}  // namespace shardmark
