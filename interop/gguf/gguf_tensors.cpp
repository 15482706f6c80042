#include "interop/gguf/gguf_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

enum class Way { from_file, to_file };

/// Where a tensor comes from.
struct Origin {
  std::string name;
  StoredForm form = StoredForm::same;
  int64_t n_heads = 1;  // interleaved_rows: of the matrix
  double scale = 1;     // scaled: of the numbers in the source
};
using Origins = std::map<std::string, Origin>;

/// Tensors of another source under other names and in other forms.
class ReformedTensors final : public TensorSource {
 public:
  ReformedTensors(std::shared_ptr<const TensorSource> source, Way way, Origins origins,
                  std::map<std::string, torch::Tensor> more)
      : source_(std::move(source)), way_(way), origins_(std::move(origins)), more_(std::move(more)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, origin] : origins_) result.push_back(name);
    for (const auto& [name, tensor] : more_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override {
    return origins_.contains(name) || more_.contains(name);
  }
  std::vector<int64_t> shape(const std::string& name) const override {
    if (const auto found = more_.find(name); found != more_.end()) return found->second.sizes().vec();
    const auto& from = origin(name);
    auto shape = source_->shape(from.name);
    if (from.form == StoredForm::transposed) std::ranges::reverse(shape);
    return shape;
  }
  torch::ScalarType dtype(const std::string& name) const override {
    if (const auto found = more_.find(name); found != more_.end()) return found->second.scalar_type();
    return source_->dtype(origin(name).name);
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    if (const auto found = more_.find(name); found != more_.end()) {
      torch::Tensor(to).copy_(found->second);
      return;
    }
    const auto& from = origin(name);
    switch (from.form) {
      case StoredForm::same:
        return source_->read_into(to, from.name);
      case StoredForm::transposed:
        return source_->read_into(to.t(), from.name);
      case StoredForm::interleaved_rows:
        return read_rows(to, from);
      case StoredForm::plus_one:
        torch::Tensor(to).copy_(source_->tensor(from.name).to(torch::kFloat) +
                                (way_ == Way::to_file ? 1 : -1));
        return;
      case StoredForm::scaled:
        source_->read_into(to, from.name);
        torch::Tensor(to).mul_(from.scale);
        return;
    }
  }
  std::string place() const override { return source_->place(); }

 private:
  const Origin& origin(const std::string& name) const {
    const auto found = origins_.find(name);
    if (found != origins_.end()) return found->second;
    throw CheckpointError(fmt::format("'{}' has no tensor '{}'", place(), excerpt(name)));
  }

  /// Each head's rows are (Dh/2, 2) in a file and (2, Dh/2) in transformers.
  void read_rows(const torch::Tensor& to, const Origin& from) const {
    const int64_t n_rows = to.size(0), H = from.n_heads;
    if (H < 1 || H > n_rows || n_rows % (2 * H) != 0) {
      throw CheckpointError(
          fmt::format("'{}': the rows of '{}' are not those of {} heads", place(), from.name, H));
    }
    const auto rows = torch::empty(to.sizes(), to.options());
    source_->read_into(rows, from.name);
    const int64_t half = n_rows / (2 * H);
    const auto pairs = way_ == Way::from_file ? rows.view({H, half, 2, -1}) : rows.view({H, 2, half, -1});
    torch::Tensor(to).copy_(pairs.transpose(1, 2).reshape(to.sizes()));
  }

  std::shared_ptr<const TensorSource> source_;
  Way way_;
  Origins origins_;
  std::map<std::string, torch::Tensor> more_;
};

/// `stored`: the tensor's name in the file; `name`: in the source.
Origin origin_of(const GgufArchitecture& architecture, const nlohmann::json& config,
                 const std::string& stored, const std::string& name) {
  const auto dot = stored.rfind('.');
  const auto module = std::string_view(stored).substr(0, dot);
  Origin origin{.name = name, .form = architecture.form_of(module, std::string_view(stored).substr(dot + 1))};
  if (origin.form == StoredForm::interleaved_rows) {
    const bool is_query = module.ends_with("attn_q");
    const auto& n_heads = config.at("num_attention_heads");
    origin.n_heads =
        is_query ? n_heads.get<int64_t>() : config.value("num_key_value_heads", n_heads).get<int64_t>();
  }
  return origin;
}

}  // namespace

std::shared_ptr<const TensorSource> tensors_of_gguf(const std::shared_ptr<const GgufFile>& file,
                                                    const GgufArchitecture& architecture,
                                                    const nlohmann::json& config) {
  Origins origins;
  for (const auto& stored : file->names()) {
    // It has become a part of config.json.
    if (stored == "rope_freqs.weight") continue;
    // One matrix, which is stored twice.
    if (stored == "output.weight" && config.at("tie_word_embeddings") == true) continue;
    const auto foreign = foreign_tensor_name(architecture, gate_of(config), stored);
    if (!foreign) {
      throw CheckpointError(fmt::format("{}: the tensor '{}' is not known in the architecture {}",
                                        file->place(), excerpt(stored), architecture.name));
    }
    origins.emplace(*foreign, origin_of(architecture, config, stored, stored));
  }
  return std::make_shared<ReformedTensors>(file, Way::from_file, std::move(origins),
                                           std::map<std::string, torch::Tensor>());
}

std::optional<double> scale_of_tied_output(const GgufArchitecture& architecture,
                                           const nlohmann::json& config) {
  if (architecture.body != GgufBody::encoder_decoder || config.at("tie_word_embeddings") != true)
    return std::nullopt;
  return 1 / std::sqrt(config.at("d_model").get<double>());
}

std::shared_ptr<const TensorSource> tensors_for_gguf(const std::shared_ptr<const TensorSource>& foreign,
                                                     const GgufArchitecture& architecture,
                                                     const nlohmann::json& config,
                                                     std::map<std::string, torch::Tensor> more) {
  Origins origins;
  for (const auto& name : foreign->names()) {
    if (is_in_left_out_head(architecture, name)) continue;
    const auto stored = stored_tensor_name(architecture, gate_of(config), name);
    if (!stored) {
      throw CheckpointError(fmt::format("the architecture {} of llama.cpp has no tensor '{}'",
                                        architecture.name, excerpt(name)));
    }
    origins.emplace(*stored, origin_of(architecture, config, *stored, name));
  }
  if (const auto scale = scale_of_tied_output(architecture, config)) {
    auto output = origins.at("token_embd.weight");
    output.form = StoredForm::scaled;
    output.scale = *scale;
    origins.emplace("output.weight", std::move(output));
  }
  return std::make_shared<ReformedTensors>(foreign, Way::to_file, std::move(origins), std::move(more));
}

}  // namespace zoo
