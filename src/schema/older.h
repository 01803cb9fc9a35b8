// Makes what an older minor version of the schema wrote look as if this version had written it.
//
// 1.10: `mpi` was the name of the transport that is `pt2pt` since 1.11. An imported study means the MPI
// library's own collectives by it, as `mpi` does now.
#pragma once

#include <map>
#include <string>

#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

class Older {
 public:
  Older() = default;
  Older(int minor, const Environment& environment);

  void renew(Environment& environment) const;
  // An id that names the transport changes with it.
  void renew(Record& record);
  void renew(std::string& id) const;  // of a record that was renewed before

 private:
  bool renames_mpi_ = false;
  std::map<std::string, std::string> ids_;
};

}  // namespace shardmark
