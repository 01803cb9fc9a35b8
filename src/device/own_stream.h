// CUDA streams that nobody else uses. torch's pool has 32 streams per priority and hands out the first again
// after that; work that is meant to overlap could then end up in one stream.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <memory>

namespace shardmark {

// A high-priority stream on a GPU. It belongs to the holder alone until it is released; then it is kept for
// the next caller.
std::shared_ptr<const c10::Stream> own_stream(at::Device device);

}  // namespace shardmark
