// Matrix products whose backward comes in two parts: the gradient of their input at once, those of their
// parameters later, which is what fills the bubble of a pipeline. Source: Qi et al., Zero Bubble Pipeline
// Parallelism, ICLR 2024.
#pragma once

#include "models/model.h"

namespace shardmark {

// x [..., in], weight [out, in], bias [out] or undefined.
at::Tensor split_linear(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias);
// x [N, in], weight [in, out], bias [out] or undefined.
at::Tensor split_projection(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias);

}  // namespace shardmark
