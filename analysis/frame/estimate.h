// A number that was estimated, with its 95 % interval.
#pragma once

#include "schema/record.h"

namespace shardmark {

// NaN: not known. An end may be infinite: the data do not bound it.
struct Estimate {
  double value = Measures::kNone;
  double low = Measures::kNone;
  double high = Measures::kNone;
};

}  // namespace shardmark
