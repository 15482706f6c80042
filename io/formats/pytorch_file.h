#pragma once
// Files of torch.save() with a state dict, alone or beside other values: pytorch_model.bin, NAME.pt,
// NAME.pth. Both forms are read: the ZIP archive of PyTorch 1.6 and later, and the one before it, which
// `_use_new_zipfile_serialization=False` still writes.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/formats/file_bytes.h"
#include "io/formats/pickle_values.h"
#include "io/tensor_source.h"

namespace zoo {

/// Opening reads the values and checks each tensor against the file's size: nothing is run, and no number is
/// read before it is asked for. The weights are the outermost dict, or the one that it has under
/// `state_dict`, `model_state_dict` or `model`. If all names begin with `module.` (DataParallel) or
/// `_orig_mod.` (torch.compile), they are read without.
class PytorchFile final : public TensorSource {
 public:
  /// Links are followed. Throws a CheckpointError that names the path and the problem: not such a file,
  /// damaged, a name of Python that is not known, no state dict, several of them.
  explicit PytorchFile(const std::filesystem::path& path);

  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override { return entries_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return entry(name).shape; }
  torch::ScalarType dtype(const std::string& name) const override;
  void read_into(const torch::Tensor& to, const std::string& name) const override;
  std::string place() const override { return file_.path().string(); }

  /// The plain value beside the weights that has this name, such as nanoGPT's `model_args`; nothing if there
  /// is none. Throws CheckpointError if it is not plain, or too large.
  std::optional<nlohmann::json> value_beside(const std::string& name) const;

 private:
  struct Entry {
    std::vector<int64_t> shape, strides;
    const PickledType* type;
    uint64_t begin;    // bytes from the start of the file to its first number
    uint64_t n_items;  // from its first number to its last
    bool is_negative;  // the numbers in the file have the other sign
  };
  const Entry& entry(const std::string& name) const;
  void add_entry(const std::string& name, const PickledTensor& tensor, uint64_t begin, uint64_t size);
  void drop_prefixes();
  void read_stored(const torch::Tensor& to, const std::string& name, const Entry& stored) const;

  FileBytes file_;
  PickleValues values_;
  ValueId top_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace zoo
