#include "interop/peft/adapted_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/peft/adapter_names.h"

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

/// The module whose matrix A a tensor is; nothing if it is no such matrix.
std::optional<std::string> adapted_module(const std::string& name) {
  if (!name.starts_with(kAdapterPrefix)) return std::nullopt;
  const auto own = name_in_base(name);
  for (const auto& ending : kEndings)
    if (ending.part == 0 && own.ends_with(ending.text)) return own.substr(0, own.size() - ending.text.size());
  return std::nullopt;
}

bool has_adapters(const TensorSource& tensors) {
  return std::ranges::any_of(tensors.names(),
                             [](const auto& name) { return adapted_module(name).has_value(); });
}

/// What is added to a matrix.
struct LowRank {
  std::string module;    // by PEFT's name
  std::string parts[3];  // names of A, B and, with DoRA, of the lengths
  bool is_of_embedding = false;
  bool is_transposed = false;  // the base has the matrix as (in, out)
  double scale = 1;
};

class AdaptedTensors final : public TensorSource {
 public:
  AdaptedTensors(const TensorMapping& mapping, std::shared_ptr<const TensorSource> base,
                 const Adapter& adapter)
      : base_(std::move(base)), adapter_(adapter.tensors) {
    for (const auto& [output, embeddings] : mapping.tied())
      if (!base_->contains(output) && base_->contains(embeddings)) outputs_.emplace(output, embeddings);
    if (n_adapters_of(adapter) == 0 && has_adapters(*adapter_)) {
      throw CheckpointError(fmt::format(
          "{}: it has no adapter of a module that target_modules of adapter_config.json names", place()));
    }
    for (const auto& name : adapter_->names()) add(name, mapping, adapter.config.modules);
    for (auto& [target, own] : adapters_) check(target, own, adapter.config);
    check_copies(mapping);
    std::erase_if(outputs_, [&](const auto& pair) { return !changes(pair.first) && !changes(pair.second); });
  }

  std::vector<std::string> names() const override {
    auto result = base_->names();
    for (const auto& [name, own] : whole_)
      if (!base_->contains(name)) result.push_back(name);
    for (const auto& [name, embeddings] : outputs_)
      if (!whole_.contains(name)) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return is_in_base(name) || whole_.contains(name); }
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

  bool is_in_base(const std::string& name) const { return base_->contains(name) || outputs_.contains(name); }
  bool changes(const std::string& name) const { return adapters_.contains(name) || whole_.contains(name); }

  /// Where a tensor is without its adapter, and its name there.
  std::pair<const TensorSource*, std::string> stored(const std::string& name) const {
    if (const auto found = whole_.find(name); found != whole_.end()) return {adapter_.get(), found->second};
    const auto output = outputs_.find(name);
    return {base_.get(), output == outputs_.end() ? name : output->second};
  }

  void add(const std::string& name, const TensorMapping& mapping, const AdaptedModules& modules) {
    if (!name.starts_with(kAdapterPrefix)) fail(name, "its name does not begin as those of PEFT");
    const auto own = name_in_base(name);
    for (const auto& ending : kEndings) {
      if (!own.ends_with(ending.text)) continue;
      const auto module = own.substr(0, own.size() - ending.text.size());
      if (!modules.contains(module)) return;
      const auto target = mapping.full_name(module + ".weight");
      if (!is_in_base(target)) fail(name, fmt::format("the base {} has no such matrix", base_->place()));
      auto& adapter = adapters_[target];
      adapter.module = module;
      adapter.parts[ending.part] = name;
      adapter.is_of_embedding |= ending.is_of_embedding;
      adapter.is_transposed = mapping.is_transposed(target);
      return;
    }
    if (own.find(".lora_") != own.npos) fail(name, "a part of an adapter that is not supported");
    const auto target = mapping.full_name(own);
    if (is_in_base(target) && shape(target) != adapter_->shape(name))
      fail(name, "the base has it in another shape");
    whole_.emplace(target, name);
  }

  void check(const std::string& target, LowRank& adapter, const AdapterConfig& config) const {
    for (int part = 0; part < (config.is_decomposed ? 3 : 2); ++part)
      if (adapter.parts[part].empty()) fail(target, "a part of its adapter is missing");
    if (!config.is_decomposed && !adapter.parts[2].empty())
      fail(target, "it has lengths, but use_dora is false");
    const auto a = adapter_->shape(adapter.parts[0]), b = adapter_->shape(adapter.parts[1]);
    const auto matrix = shape(target);
    const bool is_convolution = matrix.size() > 2;
    if (config.is_decomposed && is_convolution) fail(target, "DoRA of convolutions is not supported");
    const bool is_swapped = adapter.is_of_embedding || adapter.is_transposed;
    const int64_t rank = config.rank_of(adapter.module);
    bool is_good = matrix.size() >= 2 && a.size() == matrix.size() && b.size() == matrix.size() &&
                   a[0] == rank && b[1] == rank && b[0] == matrix[is_swapped ? 1 : 0];
    if (is_good && is_convolution) {
      is_good = std::equal(a.begin() + 1, a.end(), matrix.begin() + 1) &&
                std::all_of(b.begin() + 2, b.end(), [](int64_t size) { return size == 1; });
    } else if (is_good) {
      is_good = a[1] == matrix[is_swapped ? 0 : 1];
    }
    if (!is_good)
      fail(target, fmt::format("its adapter does not have the rank {} or the shape of its matrix", rank));
    adapter.scale = config.scale_of(adapter.module);
  }

  /// A matrix that stands in several modules, such as the embeddings of T5, is one here.
  void check_copies(const TensorMapping& mapping) const {
    for (const auto& pair : mapping.copies()) {
      if (std::ranges::find(mapping.tied(), pair) != mapping.tied().end()) continue;
      const auto& [copy, original] = pair;
      if (!changes(copy) && !changes(original)) continue;
      if (whole_.contains(copy) && whole_.contains(original)) continue;  // they are compared later
      fail(changes(copy) ? copy : original,
           "it stands in several modules of the base, and an adapter changes only one of them: this is not "
           "supported");
    }
  }

  /// The matrix with its adapter: peft.tuners.lora.Linear.merge(). Its rows are computed in pieces.
  torch::Tensor sum(const std::string& name, const LowRank& adapter) const {
    const torch::NoGradGuard no_grad;
    const auto read = [&](int part) {
      return adapter_->tensor(adapter.parts[part]).to(torch::kDouble).flatten(1);
    };
    const bool is_swapped = adapter.is_of_embedding || adapter.is_transposed;
    const auto rows_of = [&](const torch::Tensor& matrix) {
      return is_swapped ? matrix.t() : matrix.flatten(1);
    };
    const auto [source, own] = stored(name);
    const auto before = source->tensor(own);
    auto result = torch::empty(before.sizes(), dtype(name));
    const auto from = rows_of(before), to = rows_of(result);
    const auto a = read(0), b = read(1) * adapter.scale;
    torch::Tensor lengths;
    if (!adapter.parts[2].empty()) {
      lengths = adapter_->tensor(adapter.parts[2]).to(torch::kDouble).flatten();
      if (lengths.size(0) != to.size(0)) fail(name, "the lengths of DoRA are not one for each output");
    }
    constexpr int64_t most = 1024;
    for (int64_t first = 0; first < to.size(0); first += most) {
      const int64_t count = std::min(most, to.size(0) - first);
      auto rows = from.narrow(0, first, count).to(torch::kDouble) + b.narrow(0, first, count).mm(a);
      if (lengths.defined()) rows *= (lengths.narrow(0, first, count) / rows.norm(2, 1)).unsqueeze(1);
      to.narrow(0, first, count).copy_(rows);
    }
    return result;
  }

  std::shared_ptr<const TensorSource> base_, adapter_;
  std::map<std::string, LowRank> adapters_;     // by the base's name of the matrix
  std::map<std::string, std::string> whole_;    // the base's names to those of PEFT
  std::map<std::string, std::string> outputs_;  // that the base does not have → its embeddings
};

}  // namespace

std::shared_ptr<const TensorSource> adapted_tensors(const TensorMapping& mapping,
                                                    const std::shared_ptr<const TensorSource>& base,
                                                    const Adapter& adapter) {
  return std::make_shared<AdaptedTensors>(mapping, mapping.with_full_names(base), adapter);
}

int64_t n_adapters_of(const Adapter& adapter) {
  return std::ranges::count_if(adapter.tensors->names(), [&](const std::string& name) {
    const auto module = adapted_module(name);
    return module && adapter.config.modules.contains(*module);
  });
}

}  // namespace zoo
