#pragma once
// Tensors by name, wherever they are: in one file, in several, or under other names.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/open_file.h"

namespace zoo {

/// The bytes of a tensor, or nothing if they do not fit into int64. Lengths of zero are left out of the
/// check, because torch's strides hold the product of the others.
std::optional<uint64_t> size_in_bytes(const std::vector<uint64_t>& shape, size_t item_size);

/// Opens a file of tensors; links are followed. Throws CheckpointError.
Descriptor open_tensor_file(const std::filesystem::path& path);

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(const std::string& name) const = 0;
  /// Throws CheckpointError if there is no tensor of this name.
  virtual std::vector<int64_t> shape(const std::string& name) const = 0;
  /// The type in which it is stored. Throws likewise, and for a type that LibTorch or this library does not
  /// have.
  virtual torch::ScalarType dtype(const std::string& name) const = 0;
  /// Reads it into a tensor of the same shape and any type, with little memory besides. Throws likewise, and
  /// if its data is damaged.
  virtual void read_into(const torch::Tensor& to, const std::string& name) const = 0;
  /// The path of the file or directory, for messages.
  virtual std::string place() const = 0;

  /// A tensor on the CPU in the type in which it is stored. Throws as read_into().
  torch::Tensor tensor(const std::string& name) const {
    auto result = torch::empty(shape(name), torch::TensorOptions().dtype(dtype(name)));
    read_into(result, name);
    return result;
  }
};

}  // namespace zoo
