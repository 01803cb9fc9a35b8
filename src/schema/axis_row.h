// The members of a row in the table of axes (axes.h).
#pragma once

#include <array>
#include <string>
#include <variant>

#include "base/value.h"
#include "schema/point.h"

namespace shardmark {

// The member of a point in which the value of an axis is stored.
using AxisMember =
    std::variant<int64_t Point::*, std::string Point::*, Choice TrainingPoint::*,
                 std::string TrainingPoint::*, double TrainingPoint::*, int64_t TrainingPoint::*,
                 bool TrainingPoint::*, std::string CollectivePoint::*, int64_t CollectivePoint::*,
                 bool CollectivePoint::*>;
using AxisValue = std::variant<bool, int64_t, double, std::string, Choice>;

// What an axis accepts. The lists of accepted words and choices are in specs/ and strategies/;
// plan/axis_values.cpp finds them by the key of the axis.
struct Words {
  bool or_all = false;  // `all` on its own means every word
};
struct Choices {};
struct TrueOrFalse {};
struct Variables {};  // combinations of settings (settings.h), stored as text
using Accepted = std::variant<Words, Choices, TrueOrFalse, Variables, Whole, Real, Bytes>;

// A word that a suite may write in place of a number, such as `none` for 0.
struct NamedNumber {
  const char* word = nullptr;
  int64_t number = 0;
};

// The condition under which a value other than the default changes what is measured; plan/effects.cpp tests
// it. A row left at `unsaid` does not compile (static_assert in axes.h), so a new axis cannot forget to say
// it.
enum class Acts {
  unsaid,
  always,
  where_refused_else,  // make_plan skips the points where it cannot act, with a reason
  with_narrow_sums,    // gradients have 16 bits before they are summed
  with_blocks_to_recompute,
  with_gathers,
  with_tensor,  // tensor parallelism: several ranks share every block
  with_stages,
  with_two_orders,  // several pipeline stages and several copies of the model
  with_reductions,  // this and the next two: properties of the collective
  with_in_place,
  with_parts,
};

struct AxisRow {
  const char* key;  // key in suites and exclude rules, part of the identity, column of the study
  AxisMember member;
  Accepted accepted;
  std::array<NamedNumber, 2> named = {};
  const char* expected = nullptr;  // for error messages if numbers have names; {}: the range
  const char* unit = "";           // unit of the study's column
  const char* description;         // description of the study's column
  Acts acts = Acts::unsaid;
  bool required = false;
  const char* default_choice = nullptr;  // nullptr: the default of the member
  const char* scaling = nullptr;         // for a batch size: the value of TrainingPoint::scaling
  // The axis was added after the first studies were stored. At its default it is not part of the identity, so
  // that the ids of older points stay the same.
  bool is_later = false;
  // Order of the nested loops when a block is expanded: a lower number is an outer loop, and axes with equal
  // numbers nest in the order of their rows.
  int loop = 0;

  const char* phrase = nullptr;  // in the text of a point if the value is not the default
  // Heading of the axis's column in tables. nullptr: each table chooses its own heading and position.
  const char* heading = nullptr;
  bool is_section = false;  // a report has a section for each value
  // Cells with the default value are left empty.
  bool hides_default = false;
  std::string (*in_words)(int64_t) = nullptr;  // how a report shows a number other than the default

  const char* flag = nullptr;        // the flag of plan and run, which takes a list: "--model"
  const char* help = nullptr;        // help text of both flags; nullptr: the description
  const char* train_flag = nullptr;  // the flag of train; nullptr: made from the key, "--reduce-dtype"

  // Whether studies store the axis. The global batch appears in suites only: a point stores the batch of one
  // rank and its scaling.
  constexpr bool is_stored() const { return scaling == nullptr || scaling[0] != 's'; }
};

// Calls visit(member) with the member's own type. P is Point or const Point.
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
