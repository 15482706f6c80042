#include "interop/families/moved_tensors.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

torch::Tensor rows_first(const torch::Tensor& tensor, bool transposed) {
  return transposed && tensor.dim() == 2 ? tensor.t() : tensor;
}

/// The same rows in sections, one below the other.
torch::Tensor ungrouped(const torch::Tensor& rows, const RowGroups& groups) {
  const auto in_groups = rows.unflatten(0, {groups.count, -1});
  std::vector<torch::Tensor> sections;
  int64_t first = 0;
  for (const int64_t section : groups.sections) {
    const int64_t width = section / groups.count;
    sections.push_back(in_groups.narrow(1, first, width).flatten(0, 1));
    first += width;
  }
  return torch::cat(sections);
}

/// The reverse.
torch::Tensor in_groups(const torch::Tensor& rows, const RowGroups& groups) {
  std::vector<torch::Tensor> parts;
  int64_t first = 0;
  for (const int64_t section : groups.sections) {
    parts.push_back(rows.narrow(0, first, section).unflatten(0, {groups.count, -1}));
    first += section;
  }
  return torch::cat(parts, 1).flatten(0, 1);
}

/// Matrices of one tensor, stored as (in, out), as rows one below the other.
torch::Tensor rows_of_matrices(const torch::Tensor& tensor) {
  return (tensor.dim() == 3 ? tensor.transpose(1, 2) : tensor).flatten(0, 1);
}

/// The reverse.
torch::Tensor matrices_of_rows(const torch::Tensor& rows, int64_t n) {
  const auto matrices = rows.unflatten(0, {n, -1});
  return matrices.dim() == 3 ? matrices.transpose(1, 2) : matrices;
}

class StackedTensors final : public TensorSource {
 public:
  StackedTensors(std::shared_ptr<const TensorSource> source, std::vector<RowStack> stacks)
      : source_(std::move(source)), stacks_(std::move(stacks)) {
    for (size_t i = 0; i < stacks_.size(); ++i) {
      for (size_t j = 0; j < stacks_[i].to.size(); ++j)
        places_.emplace(stacks_[i].to[j].name, std::pair(i, j));
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, place] : places_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return places_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto [number, index] = places_.at(name);
    return stacks_[number].to[index].shape;
  }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto& from = stacks_[places_.at(name).first].from;
    auto type = source_->dtype(from.front().name);
    for (const auto& part : from) type = c10::promoteTypes(type, source_->dtype(part.name));
    return type;
  }
  std::string place() const override { return source_->place(); }

  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto [number, index] = places_.at(name);
    const RowStack& stack = stacks_[number];
    const auto& first = stack.from.front();
    const torch::NoGradGuard no_grad;
    if (stack.is_plain()) return source_->read_into(to, first.name);
    if (stack.move == Move::reshaped) {
      torch::Tensor(to).copy_(source_->tensor(first.name).view(to.sizes()));
      return;
    }
    if (stack.move == Move::grouped) return read_grouped(to, stack, index);
    const bool from_columns = stack.transposed == RowStack::Transposed::from;
    const bool to_columns = stack.transposed == RowStack::Transposed::to;
    int64_t begin = 0;
    for (size_t i = 0; i < index; ++i) begin += n_rows(stack.to[i], to_columns);
    const int64_t end = begin + n_rows(stack.to[index], to_columns);
    const auto target = rows_first(to, to_columns);
    int64_t part_begin = 0;
    for (const auto& part : stack.from) {
      const int64_t part_end = part_begin + n_rows(part, from_columns);
      const int64_t low = std::max(begin, part_begin), high = std::min(end, part_end);
      if (low < high) {
        const auto rows = rows_first(source_->tensor(part.name), from_columns);
        target.narrow(0, low - begin, high - low).copy_(rows.narrow(0, low - part_begin, high - low));
      }
      part_begin = part_end;
    }
  }

 private:
  void read_grouped(const torch::Tensor& to, const RowStack& stack, size_t index) const {
    std::vector<torch::Tensor> parts;
    for (const auto& part : stack.from) parts.push_back(source_->tensor(part.name));
    auto rows = parts.size() == 1 ? parts.front() : torch::cat(parts);
    const int64_t n = stack.groups.n_matrices;
    if (stack.grouped == RowStack::Side::to) {
      rows = in_groups(rows, stack.groups);
      torch::Tensor(to).copy_(n > 0 ? matrices_of_rows(rows, n) : rows);
      return;
    }
    if (n > 0) rows = rows_of_matrices(rows);
    int64_t begin = 0;
    for (size_t i = 0; i < index; ++i) begin += n_rows(stack.to[i], false);
    torch::Tensor(to).copy_(ungrouped(rows, stack.groups).narrow(0, begin, to.size(0)));
  }

  std::shared_ptr<const TensorSource> source_;
  std::vector<RowStack> stacks_;
  std::map<std::string, std::pair<size_t, size_t>> places_;  // of a name: stack, index in it
};

class WithBuffers final : public TensorSource {
 public:
  WithBuffers(std::shared_ptr<const TensorSource> source, std::map<std::string, torch::Tensor> buffers)
      : source_(std::move(source)),
        buffers_(std::move(buffers)),
        type_(source_->dtype(source_->names().front())) {}

  std::vector<std::string> names() const override {
    auto result = source_->names();
    for (const auto& [name, values] : buffers_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override {
    return buffers_.contains(name) || source_->contains(name);
  }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto found = buffers_.find(name);
    return found == buffers_.end() ? source_->shape(name) : found->second.sizes().vec();
  }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) return source_->dtype(name);
    return found->second.is_floating_point() ? type_ : found->second.scalar_type();
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) return source_->read_into(to, name);
    torch::Tensor(to).copy_(found->second);
  }
  std::string place() const override { return source_->place(); }

 private:
  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, torch::Tensor> buffers_;
  torch::ScalarType type_;
};

class RenamedTensors final : public TensorSource {
 public:
  RenamedTensors(std::shared_ptr<const TensorSource> source, std::map<std::string, std::string> stored)
      : source_(std::move(source)), stored_(std::move(stored)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, stored] : stored_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return stored_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return source_->shape(stored(name)); }
  torch::ScalarType dtype(const std::string& name) const override { return source_->dtype(stored(name)); }
  std::string place() const override { return source_->place(); }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    source_->read_into(to, stored(name));
  }

 private:
  const std::string& stored(const std::string& name) const {
    const auto found = stored_.find(name);
    return found == stored_.end() ? name : found->second;
  }

  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, std::string> stored_;  // present name → name in the source
};

}  // namespace

int64_t n_rows(const TensorPart& part, bool transposed) {
  return part.shape[transposed && part.shape.size() == 2 ? 1 : 0];
}

std::shared_ptr<const TensorSource> stacked_tensors(std::shared_ptr<const TensorSource> source,
                                                    std::vector<RowStack> stacks) {
  return std::make_shared<StackedTensors>(std::move(source), std::move(stacks));
}

std::shared_ptr<const TensorSource> with_buffers(std::shared_ptr<const TensorSource> source,
                                                 std::map<std::string, torch::Tensor> buffers) {
  return std::make_shared<WithBuffers>(std::move(source), std::move(buffers));
}

std::shared_ptr<const TensorSource> renamed_tensors(std::shared_ptr<const TensorSource> source,
                                                    std::map<std::string, std::string> stored) {
  return std::make_shared<RenamedTensors>(std::move(source), std::move(stored));
}

}  // namespace zoo
