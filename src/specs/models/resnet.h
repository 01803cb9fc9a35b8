// The shape of a residual network. Its table (specs/) and its blocks (models/) use the same list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/choice.h"

namespace shardmark::specs {

// A convolution (padding (kernel - 1) / 2, no bias) and the batch norm after it.
struct ConvNormSpec {
  std::string conv, norm;           // prefixes of the parameters' names
  int64_t in, out, kernel, stride;  // channels; pixels
  int64_t size;                     // of the output, pixels per side
};

struct ResidualSpec {
  std::string name;
  std::vector<ConvNormSpec> branch;
  std::optional<ConvNormSpec> shortcut;  // a projection if the shape changes (option B); none: the identity
};

struct ResNetShape {
  ConvNormSpec stem;
  bool pooled;  // 3x3 max pooling with stride 2 after the stem
  std::vector<ResidualSpec> blocks;
  int64_t image, features, classes;
};

// Throws UsageError if no published network has this number of layers.
ResNetShape resnet_shape(const Options& options);

}  // namespace shardmark::specs
