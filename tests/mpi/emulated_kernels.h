// The kernels that tests launch on the emulated GPU. Its state is global, so all source files of a program
// share one emulated GPU.
#pragma once

#include "tests/mpi/emulated_gpu.h"

namespace shardmark {

inline Kernels emulated_kernels() {
  return c10::make_intrusive<emulated::Launcher>(std::map<std::string, std::function<void(void**)>>{
      SHARDMARK_EMULATED(layer_norm_forward<48, 8>),
      SHARDMARK_EMULATED(layer_norm_backward<48, 8>),
      SHARDMARK_EMULATED(layer_norm_forward<48, 1>),
      SHARDMARK_EMULATED(layer_norm_backward<48, 1>),
      SHARDMARK_EMULATED(layer_norm_forward<129, 1>),
      SHARDMARK_EMULATED(layer_norm_backward<129, 1>),
      SHARDMARK_EMULATED(layer_norm_forward<264, 8>),
      SHARDMARK_EMULATED(layer_norm_backward<264, 8>),
      SHARDMARK_EMULATED(adamw<1>),
      SHARDMARK_EMULATED(adamw<8>),
      SHARDMARK_EMULATED(batch_norm_moments<1>),
      SHARDMARK_EMULATED(batch_norm_moments<8>),
      SHARDMARK_EMULATED(batch_norm_statistics),
      SHARDMARK_EMULATED(batch_norm_forward<1>),
      SHARDMARK_EMULATED(batch_norm_forward<8>),
      SHARDMARK_EMULATED(batch_norm_backward_sums<1>),
      SHARDMARK_EMULATED(batch_norm_backward_sums<8>),
      SHARDMARK_EMULATED(batch_norm_backward<1>),
      SHARDMARK_EMULATED(batch_norm_backward<8>),
      SHARDMARK_EMULATED(column_partials<1>),
      SHARDMARK_EMULATED(column_partials<8>),
      SHARDMARK_EMULATED(gelu_backward<1>),
      SHARDMARK_EMULATED(gelu_backward<8>),
      SHARDMARK_EMULATED(column_totals),
      SHARDMARK_EMULATED(fp8_largest<false>),
      SHARDMARK_EMULATED(fp8_largest<true>),
      SHARDMARK_EMULATED(fp8_round<2, false>),
      SHARDMARK_EMULATED(fp8_round<2, true>),
      SHARDMARK_EMULATED(fp8_round<3, false>),
      SHARDMARK_EMULATED(fp8_round<3, true>),
      SHARDMARK_EMULATED(rms_norm_forward<1, 1>),
      SHARDMARK_EMULATED(rms_norm_forward<1, 2>),
      SHARDMARK_EMULATED(rms_norm_forward<8, 1>),
      SHARDMARK_EMULATED(rms_norm_forward<8, 2>),
      SHARDMARK_EMULATED(rms_norm_backward<1, 1>),
      SHARDMARK_EMULATED(rms_norm_backward<1, 2>),
      SHARDMARK_EMULATED(rms_norm_backward<8, 1>),
      SHARDMARK_EMULATED(rms_norm_backward<8, 2>),
      SHARDMARK_EMULATED(rotary<1>),
      SHARDMARK_EMULATED(rotary<8>),
      SHARDMARK_EMULATED(swiglu_forward<1>),
      SHARDMARK_EMULATED(swiglu_forward<8>),
      SHARDMARK_EMULATED(swiglu_backward<1>),
      SHARDMARK_EMULATED(swiglu_backward<8>),
      SHARDMARK_EMULATED(softmax_cross_entropy<1, 1>),
      SHARDMARK_EMULATED(softmax_cross_entropy<1, 3>),
      SHARDMARK_EMULATED(softmax_cross_entropy<1, 8>),
      SHARDMARK_EMULATED(softmax_cross_entropy<8, 1>),
      SHARDMARK_EMULATED(softmax_cross_entropy<8, 2>),
      SHARDMARK_EMULATED(softmax_cross_entropy<8, 8>),
  });
}

}  // namespace shardmark
