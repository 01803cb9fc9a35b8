// CUDA streams that nobody else uses. Torch's pool has 32 of a priority and gives the first away again after
// that: work that is meant to overlap would then wait in one queue.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <memory>

namespace shardmark {

// Of high priority, on a GPU; the holder's alone until it lets go. Kept then, for the next.
std::shared_ptr<const c10::Stream> own_stream(at::Device device);

}  // namespace shardmark
