#pragma once
// Tensors in files, in the safetensors format (https://github.com/huggingface/safetensors): eight bytes of
// header length, a JSON header with dtype, shape and offsets, then the raw little-endian data.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

namespace zoo {

using TensorMap = std::map<std::string, torch::Tensor>;
using StringMap = std::map<std::string, std::string>;

/// A memory-mapped file of tensors. Opening reads and checks only the header. Every length, offset and shape
/// is checked against the file's size. Ranges must not overlap or leave holes.
class SafetensorsFile {
 public:
  /// Throws a CheckpointError that names the path and the problem.
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  size_t n_tensors() const { return entries_.size(); }
  /// The number of elements of all tensors.
  int64_t n_elements() const;
  /// A view of the mapped file, which stays mapped while the tensor lives. Copy the tensor to write to it.
  torch::Tensor tensor(const std::string& name) const;
  const StringMap& metadata() const { return metadata_; }

 private:
  struct Entry {
    torch::ScalarType dtype;
    std::vector<int64_t> shape;
    size_t begin, end;  // bytes from the start of the data
  };
  std::filesystem::path path_;
  std::shared_ptr<const char> mapping_;  // the whole file
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
