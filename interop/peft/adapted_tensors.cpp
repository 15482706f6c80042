#include "interop/peft/adapted_tensors.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

/// The parts of an adapter, as the ends of their names. Those of embeddings are (rank, V) and (D, rank).
struct Ending {
  std::string_view text;
  int part;  // 0: A, 1: B, 2: the lengths of DoRA
  bool is_of_embedding = false;
};

constexpr Ending kEndings[] = {{".lora_A.weight", 0},          {".lora_B.weight", 1},
                               {".lora_magnitude_vector", 2},  {".lora_magnitude_vector.weight", 2},
                               {".lora_embedding_A", 0, true}, {".lora_embedding_B", 1, true}};

struct Adapter {
  std::string parts[3];  // names of A, B and, with DoRA, of the lengths
  bool is_of_embedding = false;
  double scale = 1;
};

/// `name` without the first `part` in it.
std::string without(std::string name, std::string_view part) {
  if (const auto at = name.find(std::string(part) + "."); at != name.npos) name.erase(at, part.size());
  return name;
}

class AdaptedTensors final : public TensorSource {
 public:
  AdaptedTensors(std::shared_ptr<const TensorSource> base, std::shared_ptr<const TensorSource> adapter,
                 const AdapterConfig& config, MatrixLayout layout)
      : base_(std::move(base)), adapter_(std::move(adapter)), layout_(layout) {
    for (const auto& name : adapter_->names()) add(name);
    for (auto& [target, own] : adapters_) check(target, own, config);
  }

  std::vector<std::string> names() const override {
    auto result = base_->names();
    for (const auto& [name, own] : whole_)
      if (!base_->contains(name)) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override {
    return base_->contains(name) || whole_.contains(name);
  }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto [source, own] = stored(name);
    return source->shape(own);
  }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto [source, own] = stored(name);
    const auto type = source->dtype(own);
    // The sum is not rounded to a smaller type.
    return adapters_.contains(name) && type != torch::kDouble ? torch::kFloat : type;
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto found = adapters_.find(name);
    if (found != adapters_.end()) {
      torch::Tensor(to).copy_(sum(name, found->second));
    } else {
      const auto [source, own] = stored(name);
      source->read_into(to, own);
    }
  }
  std::string place() const override { return adapter_->place(); }

 private:
  [[noreturn]] void fail(std::string_view name, std::string_view problem) const {
    throw CheckpointError(fmt::format("{}: '{}': {}", adapter_->place(), excerpt(name), problem));
  }

  /// Where a tensor is without its adapter, and its name there.
  std::pair<const TensorSource*, std::string> stored(const std::string& name) const {
    const auto found = whole_.find(name);
    if (found == whole_.end()) return {base_.get(), name};
    return {adapter_.get(), found->second};
  }

  /// The base's name of a tensor. Directories of a body lack the first part of the names in a model with a
  /// head.
  std::optional<std::string> name_in_base(std::string name) const {
    for (;;) {
      if (base_->contains(name)) return name;
      const auto dot = name.find('.');
      if (dot == name.npos) return std::nullopt;
      name.erase(0, dot + 1);
    }
  }

  void add(const std::string& name) {
    constexpr std::string_view prefix = "base_model.model.";
    if (!name.starts_with(prefix)) fail(name, "its name does not begin as those of PEFT");
    // Modules of PEFT stand around those of the base.
    const auto own = without(without(name.substr(prefix.size()), ".base_layer"), ".modules_to_save");
    for (const auto& ending : kEndings) {
      if (!own.ends_with(ending.text)) continue;
      const auto module = own.substr(0, own.size() - ending.text.size());
      const auto target = name_in_base(module + ".weight");
      if (!target) fail(name, fmt::format("the base {} has no such matrix", base_->place()));
      auto& adapter = adapters_[*target];
      adapter.parts[ending.part] = name;
      adapter.is_of_embedding = ending.is_of_embedding;
      modules_[*target] = module;
      return;
    }
    if (own.find(".lora_") != own.npos) fail(name, "a part of an adapter that is not supported");
    const auto target = name_in_base(own);
    if (target && base_->shape(*target) != adapter_->shape(name))
      fail(name, "the base has it in another shape");
    whole_.emplace(target.value_or(own), name);
  }

  void check(const std::string& target, Adapter& adapter, const AdapterConfig& config) const {
    const auto& module = modules_.at(target);
    for (int part = 0; part < (config.is_decomposed && !adapter.is_of_embedding ? 3 : 2); ++part)
      if (adapter.parts[part].empty()) fail(target, "a part of its adapter is missing");
    if (!config.is_decomposed && !adapter.parts[2].empty())
      fail(target, "it has lengths, but use_dora is false");
    if (config.is_decomposed && adapter.is_of_embedding) fail(target, "DoRA of embeddings is not supported");
    const auto a = adapter_->shape(adapter.parts[0]), b = adapter_->shape(adapter.parts[1]);
    auto shape = base_->shape(target);
    const bool is_swapped = adapter.is_of_embedding || is_in_out(target);
    const int64_t rank = config.rank_of(module);
    const bool is_good = shape.size() == 2 && a.size() == 2 && b.size() == 2 && a[0] == rank &&
                         b[1] == rank && a[1] == shape[is_swapped ? 0 : 1] &&
                         b[0] == shape[is_swapped ? 1 : 0];
    if (!is_good)
      fail(target, fmt::format("its adapter does not have the rank {} or the shape of its matrix", rank));
    adapter.scale = config.scale_of(module);
  }

  bool is_in_out(const std::string& target) const {
    // The head of GPT-2 is a torch.nn.Linear.
    return layout_ == MatrixLayout::in_out && target.find("h.") != target.npos;
  }

  /// The matrix with its adapter: peft.tuners.lora.Linear.merge().
  torch::Tensor sum(const std::string& name, const Adapter& adapter) const {
    const auto type = dtype(name);
    const auto read = [&](int part) { return adapter_->tensor(adapter.parts[part]).to(type); };
    const bool is_swapped = adapter.is_of_embedding || is_in_out(name);
    const auto added = read(1).matmul(read(0)) * adapter.scale;
    const auto [source, own] = stored(name);
    const auto before = source->tensor(own).to(type);
    auto matrix = (is_swapped ? before.t() : before) + added;
    if (!adapter.parts[2].empty()) {
      const auto lengths = read(2).flatten();
      if (lengths.size(0) != matrix.size(0)) fail(name, "the lengths of DoRA are not one for each output");
      matrix = matrix * (lengths / matrix.norm(2, 1)).unsqueeze(1);
    }
    return is_swapped ? matrix.t() : matrix;
  }

  std::shared_ptr<const TensorSource> base_, adapter_;
  MatrixLayout layout_;
  std::map<std::string, Adapter> adapters_;     // by the base's name of the matrix
  std::map<std::string, std::string> modules_;  // their modules by PEFT's names
  std::map<std::string, std::string> whole_;    // the base's names to those of PEFT
};

}  // namespace

std::shared_ptr<const TensorSource> adapted_tensors(const std::shared_ptr<const TensorSource>& base,
                                                    const std::shared_ptr<const TensorSource>& adapter,
                                                    const AdapterConfig& config, MatrixLayout layout) {
  return std::make_shared<AdaptedTensors>(base, adapter, config, layout);
}

}  // namespace zoo
