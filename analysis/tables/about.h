// Which point a row is about, for tables that hold training points and collectives together.
#pragma once

#include "analysis/frame/merged.h"
#include "analysis/table/columns.h"

namespace shardmark {

// The cells of one point, or of several that share a row. An empty cell says nothing.
struct About {
  Cell work = {"", nullptr};       // model or operation
  Cell strategy = {"", nullptr};   // of a collective: in place or out of place
  Cell transport = {"", nullptr};  // empty text: the default of the machine
  Cell ranks = {"", nullptr};
  Cell nodes = {"", nullptr};
  Cell machine = {"", nullptr};
  Cell size = {"", nullptr};  // batch per rank, or bytes of the message
};

About about_point(const MergedPoint& merged);

ColumnsOf<About> columns_of_about();
ColumnsOf<MergedPoint> about_columns();

}  // namespace shardmark
