// Helpers to write the rows of model tables.
#pragma once

#include <string>
#include <utility>

#include "specs/model_table.h"

namespace shardmark::specs {

// Larger sizes are taken for typing errors: their tables would fill the memory, and their bytes overflow 64
// bits.
inline constexpr double kMostLayers = 10000;
inline constexpr double kMostWidth = 1 << 20;
inline constexpr double kMostValues = 1 << 24;  // tokens, features, classes

inline ParameterSpec normal(std::string name, std::vector<int64_t> shape, double deviation) {
  return {std::move(name), std::move(shape), Initial::normal, deviation};
}
inline ParameterSpec uniform(std::string name, std::vector<int64_t> shape, double half_width) {
  return {std::move(name), std::move(shape), Initial::uniform, half_width};
}
inline ParameterSpec zeros(std::string name, int64_t size) {
  return {std::move(name), {size}, Initial::zeros, 0};
}
inline ParameterSpec ones(std::string name, int64_t size) {
  return {std::move(name), {size}, Initial::ones, 0};
}

// The same parameter, sharded over tensor-parallel ranks along a dimension: between units, such as heads, in
// each of its pieces; or anywhere.
inline ParameterSpec cut(ParameterSpec parameter, int64_t dim, int64_t units, const char* what,
                         int64_t pieces = 1) {
  parameter.cut = Cut{dim, units, what, pieces};
  return parameter;
}
inline ParameterSpec cut_by_words(ParameterSpec parameter) {
  return cut(std::move(parameter), 0, 0, "words");
}

// An integer from resolved options.
inline int64_t integer(const Options& options, const char* key) { return options.at(key).get<int64_t>(); }

}  // namespace shardmark::specs
