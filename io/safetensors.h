#pragma once
// Tensors in files, in the safetensors format (https://github.com/huggingface/safetensors): eight bytes of
// header length, a JSON header with dtype, shape and offsets, then the raw little-endian data.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/open_file.h"
#include "io/tensor_source.h"

namespace zoo {

using TensorMap = std::map<std::string, torch::Tensor>;
using StringMap = std::map<std::string, std::string>;

/// A file of tensors. Opening reads and checks only the header. Every length, offset and shape is checked
/// against the file's size. Ranges must not overlap or leave holes. The data is read when it is asked for,
/// and not mapped: a mapped file that becomes shorter kills the process.
class SafetensorsFile final : public TensorSource {
 public:
  /// Throws a CheckpointError that names the path and the problem. Links are followed.
  explicit SafetensorsFile(const std::filesystem::path& path);

  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override { return entries_.contains(name); }
  size_t n_tensors() const { return entries_.size(); }
  std::vector<int64_t> shape(const std::string& name) const override { return entry(name).shape; }
  /// A file may have tensors of types that are not supported; only who asks for one of them gets an error.
  torch::ScalarType dtype(const std::string& name) const override;
  /// Without a copy in between if the tensor has the stored type and lies in the CPU's memory as the file
  /// does.
  void read_into(const torch::Tensor& tensor, const std::string& name) const override;
  std::string place() const override { return path_.string(); }
  const StringMap& metadata() const { return metadata_; }

 private:
  struct Entry {
    std::string dtype;  // as the file says
    std::vector<int64_t> shape;
    size_t begin, end;  // bytes from the start of the data
  };
  const Entry& entry(const std::string& name) const;
  void read_converted(const Entry& entry, torch::ScalarType type, const torch::Tensor& to) const;
  void read_data(size_t begin, size_t size, void* to) const;

  std::filesystem::path path_;
  Descriptor file_;
  size_t data_offset_ = 0;
  std::map<std::string, Entry> entries_;
  StringMap metadata_;
};

/// The number of elements of all tensors.
int64_t n_elements(const TensorSource& source);

/// Writes all tensors of a source, one after the other, so that only one is in memory. Otherwise as
/// save_safetensors(). Throws also what the source throws.
void copy_safetensors(const std::filesystem::path& path, const TensorSource& source,
                      const StringMap& metadata = {});

/// Writes `tensors` (from any device, made contiguous) and `metadata` to `path`, and flushes them to the
/// disk. Not atomic: write into a temporary directory and rename that directory (io/files.h). Throws
/// SystemError.
void save_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                      const StringMap& metadata = {});

}  // namespace zoo
