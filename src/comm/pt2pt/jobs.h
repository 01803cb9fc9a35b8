// The collectives as jobs of the engine. Ranks exchange pieces directly with each other, which moves exactly
// the ring bytes. Short messages take one round, or go along a binomial tree if there are many ranks.
#pragma once

#include "comm/communicator.h"
#include "comm/pt2pt/engine/engine.h"

namespace shardmark {

Job all_reduce_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, ReduceOp op);
Job reduce_scatter_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, ReduceOp op);
Job reduce_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root, ReduceOp op);

Job all_gather_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in);
Job broadcast_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root);
Job all_to_all_job(const HostGroup& group, const Call& call);
Job gather_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root);
Job scatter_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root);
Job send_recv_job(const HostGroup& group, const at::Tensor& out, int from, const at::Tensor& in, int to);

}  // namespace shardmark
