// Matrix products whose backward comes in two parts: the gradient of their input at once, and those of their
// parameters later, where a pipeline would otherwise be idle. Source: Qi et al., Zero Bubble Pipeline
// Parallelism, ICLR 2024.
#pragma once

#include "models/model.h"

namespace shardmark {

// x is [..., in], weight [out, in], bias [out] or undefined.
at::Tensor split_linear(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias);
// x is [N, in], weight [in, out], bias [out] or undefined.
at::Tensor split_projection(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias);

}  // namespace shardmark
