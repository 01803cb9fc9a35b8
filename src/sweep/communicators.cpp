#include "sweep/communicators.h"

#include "comm/transports.h"
#include "comm/wrappers/checked.h"

namespace shardmark {

PointCommunicators::Current& PointCommunicators::get(int64_t ranks, const std::string& transport,
                                                     bool unused) {
  if (!current_ || unused || current_->ranks != ranks || current_->transport != transport)
    make(ranks, transport);
  return *current_;
}

void PointCommunicators::make(int64_t ranks, const std::string& transport) {
  current_.reset();
  if (!whole_)
    whole_ = make_communicator(default_transport(options_.device), world_, options_.device, moved_by_);
  const int color = world_.rank() < ranks ? 0 : -1;
  Current made{ranks, transport, world_.split(color, world_.rank()), whole_->split(color, world_.rank())};
  if (made.comm) {
    made.comm = make_around(transport, std::move(made.comm), made.group);
    if (options_.check_collectives)
      made.comm = make_checked(std::move(made.comm), made.group.split(0, made.group.rank()));
    made.comm->set_heartbeat(&heartbeat_);
  }
  current_ = std::move(made);
}

}  // namespace shardmark
