// NVIDIA's management library, opened at run time. It is used without its header and without linking to it,
// so that a machine without GPUs needs neither.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

namespace shardmark {

std::string pci_bus_id(at::Device device);  // "0000:17:00.0"; empty on the CPU

class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";
  // Returns nullptr if the library does not exist or does not initialize.
  static std::shared_ptr<const Nvml> open(const std::string& library = kLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // A function with NVML's own types: a device is an opaque pointer, a result of 0 means success. find()
  // returns nullptr if this version of NVML has no such function, device() if there is no such device.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }
  void* device(const std::string& pci_bus_id) const;

  // Calls `name(leading..., &value)` and returns the value. If it cannot be read, ask() returns nothing and
  // read() the fallback.
  template <class Value, class... Leading>
  std::optional<Value> ask(const char* name, Leading... leading) const {
    auto* function = find<int(Leading..., Value*)>(name);
    Value value{};
    return function != nullptr && function(leading..., &value) == 0 ? std::optional(value) : std::nullopt;
  }
  template <class Value, class... Leading>
  Value read(const char* name, Value fallback, Leading... leading) const {
    return ask<Value>(name, leading...).value_or(fallback);
  }

 private:
  explicit Nvml(void* library) : library_(library) {}
  void* address(const char* name) const;
  void* library_;
};

}  // namespace shardmark
