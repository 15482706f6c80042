#pragma once
// Tensors in files, in the safetensors format (https://github.com/huggingface/safetensors): eight bytes of
// header length, a JSON header with dtype, shape and offsets, then the raw little-endian data.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/open_file.h"

namespace zoo {

using TensorMap = std::map<std::string, torch::Tensor>;
using StringMap = std::map<std::string, std::string>;

/// A file of tensors. Opening reads and checks only the header. Every length, offset and shape is checked
/// against the file's size. Ranges must not overlap or leave holes. The data is read when it is asked for,
/// and not mapped: a mapped file that becomes shorter kills the process.
class SafetensorsFile {
 public:
  /// Throws a CheckpointError that names the path and the problem.
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  size_t n_tensors() const { return entries_.size(); }
  /// The number of elements of all tensors.
  int64_t n_elements() const;
  const std::vector<int64_t>& shape(const std::string& name) const { return entry(name).shape; }
  torch::ScalarType dtype(const std::string& name) const { return entry(name).dtype; }
  /// Reads a tensor. Like shape() and dtype(), throws CheckpointError if there is none of this name; also if
  /// its data is damaged.
  torch::Tensor tensor(const std::string& name) const;
  /// Reads it into a tensor of the same shape, without a copy in between if that has the same type and lies
  /// in the CPU's memory as the file does. Throws as tensor().
  void read_into(const torch::Tensor& tensor, const std::string& name) const;
  const StringMap& metadata() const { return metadata_; }

 private:
  struct Entry {
    torch::ScalarType dtype;
    std::vector<int64_t> shape;
    size_t begin, end;  // bytes from the start of the data
  };
  const Entry& entry(const std::string& name) const;
  void read_data(const Entry& entry, void* to) const;

  std::filesystem::path path_;
  Descriptor file_;
  size_t data_offset_ = 0;
  std::map<std::string, Entry> entries_;
  StringMap metadata_;
};

/// Writes `tensors` (from any device, made contiguous) and `metadata` to `path`, and flushes them to the
/// disk. Not atomic: write into a temporary directory and rename that directory (io/files.h). Throws
/// SystemError.
void save_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                      const StringMap& metadata = {});

}  // namespace zoo
