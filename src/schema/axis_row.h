// What a row of the table of axes (axes.h) says.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "base/value.h"
#include "schema/point.h"

namespace shardmark {

// Where a point holds the value of an axis.
using AxisMember =
    std::variant<int64_t Point::*, std::string Point::*, Choice TrainingPoint::*,
                 std::string TrainingPoint::*, double TrainingPoint::*, int64_t TrainingPoint::*,
                 bool TrainingPoint::*, std::string CollectivePoint::*, int64_t CollectivePoint::*,
                 bool CollectivePoint::*>;
using AxisValue = std::variant<bool, int64_t, double, std::string, Choice>;

// What an axis accepts. Words and choices have their tables in specs/ and strategies/; plan/axis_values.cpp
// finds them by the key.
struct Words {
  bool or_all = false;  // `all`, alone, stands for every word
};
struct Choices {};
struct TrueOrFalse {};
struct Variables {};  // combinations of settings (settings.h), as text
using Accepted = std::variant<Words, Choices, TrueOrFalse, Variables, Whole, Real, Bytes>;

// A word that a suite may write instead of a number.
struct NamedNumber {
  const char* word = nullptr;
  int64_t number = 0;
};

// Where values of an axis other than its default change what is measured; plan/effects.cpp tests it. `unsaid`
// does not compile: whoever adds an axis says it.
enum class Acts {
  unsaid,
  always,
  where_refused_else,  // a rule of make_plan says why other points cannot run
  with_narrow_sums,    // gradients are in 16 bits before they are summed
  with_blocks_to_recompute,
  with_gathers,     // of parameters
  with_tensor,      // ranks that share every block
  with_stages,      // of a pipeline
  with_two_orders,  // several stages, and several copies of the model
  with_reductions,  // of the collective, as for the next two
  with_in_place,
  with_parts,
};

struct AxisRow {
  const char* key;  // in a suite, a rule of exclude and the identity; the name of the study's column
  AxisMember member;
  Accepted accepted;
  std::array<NamedNumber, 2> named = {};
  const char* expected = nullptr;  // what messages say is accepted, where numbers have names; {}: the range
  const char* unit = "";           // of the study's column
  const char* description;         // of that column
  Acts acts = Acts::unsaid;
  bool required = false;                 // in every block
  const char* default_choice = nullptr;  // any other default is the one of the member
  const char* scaling = nullptr;         // of a batch: what TrainingPoint::scaling becomes
  bool is_later = false;  // younger than studies that have none: no part of the identity at its default
  int loop = 0;  // expansion nests its loops by this number, then by the order of rows; the last is innermost

  const char* phrase = nullptr;   // in the text of a point, where the value is not the default
  const char* heading = nullptr;  // of a table's column; nullptr: each table names and places it by itself
  bool is_section = false;        // rows of a report that differ in it are sections of their own
  bool hides_default = false;     // its cells are empty at the default
  std::string (*in_words)(int64_t) = nullptr;  // how a report shows a number that is not the default

  const char* flag = nullptr;        // of plan and run, a list: "--models"
  const char* help = nullptr;        // of either flag; nullptr: the description
  const char* train_flag = nullptr;  // of train; nullptr: the key, "--reduce-dtype"

  // The global batch is written in a suite alone; a point has the batch of a rank, and its scaling.
  constexpr bool is_stored() const { return scaling == nullptr || scaling[0] != 's'; }
};

// visit(member), with the member's own type. P: Point or const Point.
template <class P, class Visit>
auto visit_member(const AxisRow& axis, P& point, Visit&& visit) {
  return std::visit(
      [&](auto member) {
        if constexpr (requires { point.*member; })
          return visit(point.*member);
        else if constexpr (requires { point.training.*member; })
          return visit(point.training.*member);
        else
          return visit(point.collective.*member);
      },
      axis.member);
}

}  // namespace shardmark
