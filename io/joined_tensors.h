#pragma once
// The tensors of several sources as those of one.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/tensor_source.h"

namespace zoo {

class JoinedTensors final : public TensorSource {
 public:
  /// `place` stands for all sources in messages. Throws CheckpointError if two sources have a tensor of the
  /// same name.
  JoinedTensors(std::string place, std::vector<std::shared_ptr<const TensorSource>> sources);

  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override { return places_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return source_of(name).shape(name); }
  torch::ScalarType dtype(const std::string& name) const override { return source_of(name).dtype(name); }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    source_of(name).read_into(to, name);
  }
  std::string place() const override { return place_; }

 private:
  const TensorSource& source_of(const std::string& name) const;

  std::string place_;
  std::vector<std::shared_ptr<const TensorSource>> sources_;
  std::map<std::string, size_t> places_;  // the source of each tensor
};

}  // namespace zoo
