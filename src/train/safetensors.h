// safetensors files: written tensor by tensor, read by name. The one format of checkpoints and of weights.
// Source: https://huggingface.co/docs/safetensors, "Format": 8 bytes of header size, a JSON header, the data.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "schema/beside.h"

namespace shardmark {

using TextMap = std::map<std::string, std::string>;

// The file appears under its name, whole and durable, when finish() returns; before that it has another name
// beside it (schema/beside.h). It takes the place of a regular file alone. UsageErrors say what the disk did
// not take.
class SafetensorsWriter {
 public:
  // header_room: bytes kept in front for the header, padded with blanks; see header_bytes().
  SafetensorsWriter(const std::string& path, int64_t header_room);
  SafetensorsWriter(SafetensorsWriter&&) = delete;

  // More than what the entry of a tensor of such a name takes in the header.
  static int64_t header_bytes(const std::string& name) { return static_cast<int64_t>(name.size()) + 256; }

  void add(const std::string& name, const at::Tensor& value);  // of a floating type, on the CPU
  void finish(const TextMap& metadata);                        // adds "checksum", of data and header

 private:
  std::string path_;
  int64_t header_room_;
  FileBeside beside_;
  AppendFile file_;
  nlohmann::ordered_json header_;
  uint64_t hash_;
};

// Or several of them, by the index that Hugging Face writes beside the parts of a large model:
// model.safetensors.index.json, {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  // the format's word: F32, BF16 ...
    std::vector<int64_t> shape;
    int64_t begin;  // in the file
    int64_t num_bytes;
  };

  // path: of such a file, or of an index (.json). UsageError: missing, truncated, or not such a file.
  explicit SafetensorsFile(const std::string& path);
  const std::string& path() const { return path_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const TextMap& metadata() const { return metadata_; }
  at::ScalarType type_of(const std::string& name) const;  // UsageError: no such tensor, not floating
  at::Tensor read(const std::string& name) const;         // on the CPU. UsageError: the same
  bool has_checksum() const;
  void verify() const;  // UsageError: this is not what was written, as far as a checksum tells

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
  std::vector<SafetensorsFile> parts_;     // of an index
  std::map<std::string, size_t> part_of_;  // by tensor
};

}  // namespace shardmark
