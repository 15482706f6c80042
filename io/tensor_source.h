#pragma once
// Tensors by name, wherever they are: in one file, in several, or under other names.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace zoo {

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
