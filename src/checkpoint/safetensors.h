// safetensors files, written tensor by tensor and read by name. Checkpoints and weights use this one format.
// Source: https://huggingface.co/docs/safetensors, "Format": 8 bytes of header size, a JSON header, the data.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/fast_hash.h"
#include "schema/beside.h"

namespace shardmark {

using TextMap = std::map<std::string, std::string>;

// Writes a file. It appears under its name, complete and durable, when finish() returns; until then it has a
// temporary name beside it (schema/beside.h). It replaces only a regular file. Throws UsageError with what
// the disk did not accept.
class SafetensorsWriter {
 public:
  // header_room is the number of bytes reserved for the header, which is padded with blanks; header_bytes()
  // tells how many are needed.
  SafetensorsWriter(const std::string& path, int64_t header_room);
  SafetensorsWriter(SafetensorsWriter&&) = delete;

  // An upper bound of the bytes that the header entry of a tensor with this name takes.
  static int64_t header_bytes(const std::string& name) { return static_cast<int64_t>(name.size()) + 256; }

  void add(const std::string& name, const at::Tensor& value);  // floating-point, on the CPU
  // Adds "xxh3", a hash of data and header. Without `sync` the file may still be on its way to the disk.
  void finish(const TextMap& metadata, bool sync = true);

 private:
  std::string path_;
  int64_t header_room_;
  FileBeside beside_;
  AppendFile file_;
  nlohmann::ordered_json header_;
  FastHash hash_;
};

// Reads a file, or the several files of a large model through the index that Hugging Face writes beside them:
// model.safetensors.index.json, {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  // in the format's words: F32, BF16 ...
    std::vector<int64_t> shape;
    int64_t begin;  // offset in the file
    int64_t num_bytes;
  };

  // `path` names such a file or an index (.json). Throws UsageError if it is missing, truncated, or in
  // another format.
  explicit SafetensorsFile(const std::string& path);
  const std::string& path() const { return path_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const TextMap& metadata() const { return metadata_; }
  // Throws UsageError if there is no such tensor, or if it is not floating-point.
  at::ScalarType type_of(const std::string& name) const;
  // Reads a tensor to the CPU. Throws the same errors.
  at::Tensor read(const std::string& name) const;
  bool has_checksum() const;
  // Throws UsageError if the content is not what was written. Files without a checksum pass. `on_piece` is
  // called every few MiB.
  void verify(const std::function<void()>& on_piece = [] {}) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  nlohmann::ordered_json parsed(const std::string& text) const;
  void read_header();
  void read_index();
  Entry entry_of(const std::string& name, const nlohmann::ordered_json& value, int64_t data_begin) const;
  void check_places(int64_t data_begin) const;

  std::string path_;
  File file_;
  int64_t size_ = 0;
  std::map<std::string, Entry> entries_;
  TextMap metadata_;
  std::string checked_header_;             // without the checksum
  std::vector<SafetensorsFile> parts_;     // the files that an index names
  std::map<std::string, size_t> part_of_;  // by tensor name: its index in parts_
};

}  // namespace shardmark
