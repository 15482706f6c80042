#pragma once
// A GGUF file, as llama.cpp uses it (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): keys with
// values, then tensors.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/formats/block_types.h"
#include "io/open_file.h"
#include "io/tensor_source.h"

namespace zoo {

/// Opening reads keys and shapes, all checked against the file's size. Tensors are read when they are asked
/// for. Blocks of small integers become float32, and MXFP4 bfloat16. Shapes are in the order of LibTorch:
/// GGUF lists the dimensions from the last to the first.
class GgufFile final : public TensorSource {
 public:
  /// Throws a CheckpointError that names the path and the problem: no GGUF file, damaged, or of another
  /// version than 2 and 3. Links are followed.
  explicit GgufFile(const std::filesystem::path& path);

  /// The keys: numbers, texts, true and false, lists.
  const nlohmann::json& metadata() const { return metadata_; }

  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override { return entries_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return entry(name).shape; }
  torch::ScalarType dtype(const std::string& name) const override;
  void read_into(const torch::Tensor& to, const std::string& name) const override;
  /// The same for the rows from `first` on, as many as `to` has. The tensor has at least two dimensions.
  void read_rows_into(const torch::Tensor& to, const std::string& name, int64_t first) const;
  std::string place() const override { return path_.string(); }
  /// The format in which a tensor is stored, such as "Q4_1". Throws CheckpointError.
  const BlockType& stored_as(const std::string& name) const;

 private:
  struct Entry {
    uint32_t type;
    std::vector<int64_t> shape;
    uint64_t begin;  // bytes from the start of the file
  };
  const Entry& entry(const std::string& name) const;
  /// Reads from the element `first` on.
  void read_elements(const torch::Tensor& to, const std::string& name, int64_t first) const;

  std::filesystem::path path_;
  Descriptor file_;
  nlohmann::json metadata_ = nlohmann::json::object();
  std::map<std::string, Entry> entries_;
};

/// The double with the fewest digits that float32 rounds to `value`: 1e-5, not 9.9999997e-06. metadata() has
/// numbers of float32 in this form.
double shortest(float value);

/// Whether a file begins as GGUF does.
bool is_gguf(const std::filesystem::path& path);

}  // namespace zoo
