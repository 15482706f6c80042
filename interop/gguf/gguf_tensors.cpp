#include "interop/gguf/gguf_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "interop/gguf/gguf_rotary.h"
#include "interop/gguf/gguf_tensor_names.h"

namespace zoo {
namespace {

using Shape = std::vector<int64_t>;

constexpr int64_t kMostExperts = 1 << 12;  // as model.experts.count

/// Where a tensor comes from.
struct Origin {
  StoredForm form = StoredForm::same;
  /// In the source. From a file, one, or two that are parts of it; to a file, one, or one for each expert.
  std::vector<std::string> names = {};
  int64_t expert = 0;   // from a file: which one of the matrices of experts
  int64_t n_heads = 1;  // interleaved_rows: of the matrix
  double scale = 1;     // scaled: of the numbers in the source
};
using Origins = std::map<std::string, Origin>;

/// Rows that take turns by groups, as (groups, rows of one, …).
torch::Tensor in_groups(const torch::Tensor& rows, int64_t n_groups) {
  return rows.unflatten(0, {n_groups, -1});
}

/// The matrices of all experts in three dimensions, each transposed; a tensor with fewer dimensions stays.
torch::Tensor by_columns(const torch::Tensor& x) { return x.dim() == 3 ? x.transpose(1, 2) : x; }
/// The shape of the same.
void swap_columns(Shape& shape) {
  if (shape.size() == 3) std::swap(shape[1], shape[2]);
}

/// Tensors of another source under other names and in other forms.
class ReformedTensors : public TensorSource {
 public:
  ReformedTensors(std::shared_ptr<const TensorSource> source, GgufHeads heads, Origins origins)
      : source_(std::move(source)), heads_(heads), origins_(std::move(origins)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, origin] : origins_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return origins_.contains(name); }
  Shape shape(const std::string& name) const override { return shape_of(origin(name)); }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto& names = origin(name).names;
    auto type = source_->dtype(names.front());
    for (const auto& one : names) type = c10::promoteTypes(type, source_->dtype(one));
    return type;
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const torch::NoGradGuard no_grad;
    const auto& from = origin(name);
    if (const auto found = shape_of(from); to.sizes() != torch::IntArrayRef(found)) {
      throw CheckpointError(fmt::format("'{}': '{}' has the shape ({}), but ({}) is needed", place(),
                                        excerpt(name), fmt::join(found, ", "), fmt::join(to.sizes(), ", ")));
    }
    read(to, from);
  }
  std::string place() const override { return source_->place(); }

 protected:
  virtual Shape shape_of(const Origin& from) const = 0;
  virtual void read(const torch::Tensor& to, const Origin& from) const = 0;

  [[noreturn]] void fail(const Origin& from, std::string_view problem) const {
    throw CheckpointError(
        fmt::format("'{}': the tensor '{}' {}", place(), excerpt(from.names.front()), problem));
  }
  const TensorSource& source() const { return *source_; }
  const GgufHeads& heads() const { return heads_; }
  Shape source_shape(const Origin& from, size_t i = 0) const { return source_->shape(from.names.at(i)); }
  /// Rows that must be in pairs by heads.
  void check_pairs(const torch::Tensor& rows, const Origin& from) const {
    const int64_t H = from.n_heads;
    if (H < 1 || H > rows.size(0) || rows.size(0) % (2 * H) != 0)
      fail(from, fmt::format("has rows that are not those of {} heads", H));
  }
  /// Rows that must be those of queries, keys and values.
  void check_sections(const torch::Tensor& rows, const Origin& from) const {
    const int64_t K = heads_.n_kv_heads, H = heads_.n_heads;
    if (K < 1 || H % K != 0 || rows.size(0) != (H + 2 * K) * heads_.width)
      fail(from, fmt::format("has rows that are not those of {} heads", H));
  }

 private:
  const Origin& origin(const std::string& name) const {
    const auto found = origins_.find(name);
    if (found != origins_.end()) return found->second;
    throw CheckpointError(fmt::format("'{}' has no tensor '{}'", place(), excerpt(name)));
  }

  std::shared_ptr<const TensorSource> source_;
  GgufHeads heads_;
  Origins origins_;
};

/// Those of a file as transformers has them.
class ForeignTensors final : public ReformedTensors {
 public:
  ForeignTensors(const std::shared_ptr<const GgufFile>& file, GgufHeads heads, Origins origins)
      : ReformedTensors(file, heads, std::move(origins)), file_(file) {}

 private:
  /// The shapes of both parts of a tensor.
  std::pair<Shape, Shape> parts_of(const Origin& from, size_t least_rank, size_t most_rank) const {
    if (from.names.size() != 2) fail(from, "is there without its other part");
    for (const auto& name : from.names) source().dtype(name);  // a known format, and so within the file
    auto first = source_shape(from), second = source_shape(from, 1);
    if (first.size() != second.size() || first.size() < least_rank || first.size() > most_rank)
      fail(from, "has another form than its other part");
    return {std::move(first), std::move(second)};
  }

  Shape shape_of(const Origin& from) const override {
    auto shape = source_shape(from);
    switch (from.form) {
      case StoredForm::same:
      case StoredForm::interleaved_rows:
      case StoredForm::plus_one:
      case StoredForm::scaled:
      case StoredForm::sections:
        return shape;
      case StoredForm::transposed:
        std::ranges::reverse(shape);
        return shape;
      case StoredForm::flat:
        if (shape.size() == 1) shape.insert(shape.begin(), 1);
        return shape;
      case StoredForm::experts:
        if (shape.size() < 2 || from.expert >= shape.front())
          fail(from, "has not one matrix for each expert");
        shape.erase(shape.begin());
        return shape;
      case StoredForm::columns:
        swap_columns(shape);
        return shape;
      case StoredForm::even_columns:
      case StoredForm::odd_columns: {
        auto [gates, others] = parts_of(from, 2, 3);
        if (gates != others) fail(from, "has another shape than its other part");
        gates[1] *= 2;
        swap_columns(gates);
        return gates;
      }
      case StoredForm::latent_keys:
      case StoredForm::latent_values: {
        const auto [keys, values] = parts_of(from, 3, 3);
        if (keys[0] != values[0] || keys[0] != heads().n_heads || keys[1] != values[2])
          fail(from, "has other heads than its other part");
        return {keys[0] * (keys[2] + values[1]), keys[1]};
      }
    }
    return shape;
  }

  void read(const torch::Tensor& to, const Origin& from) const override {
    const auto& name = from.names.front();
    const auto target = torch::Tensor(to);
    switch (from.form) {
      case StoredForm::same:
        return source().read_into(to, name);
      case StoredForm::transposed:
        return source().read_into(to.t(), name);
      case StoredForm::interleaved_rows:
        return read_rows(to, from);
      case StoredForm::plus_one:
        target.copy_(source().tensor(name).to(torch::kFloat) - 1);
        return;
      case StoredForm::scaled:
        fail(from, "is only written");
      case StoredForm::flat:
        return source().read_into(to.view(source().shape(name)), name);
      case StoredForm::sections:
        return read_sections(to, from);
      case StoredForm::experts:
        return file_->read_rows_into(to.unsqueeze(0), name, from.expert);
      case StoredForm::columns:
        return source().read_into(by_columns(to), name);
      case StoredForm::even_columns:
      case StoredForm::odd_columns: {
        const auto columns = to.unflatten(-1, {-1, 2});
        for (int64_t i = 0; i < 2; ++i) {
          const auto part = columns.select(-1, i);
          source().read_into(by_columns(part), from.names.at(size_t(i)));
        }
        return;
      }
      case StoredForm::latent_keys:
      case StoredForm::latent_values: {
        const auto keys = source().tensor(name), values = source().tensor(from.names.at(1));
        target.copy_(torch::cat({keys.transpose(1, 2), values}, 1).flatten(0, 1));
        return;
      }
    }
  }

  /// Each head's rows are (Dh/2, 2) in a file and (2, Dh/2) in transformers.
  void read_rows(const torch::Tensor& to, const Origin& from) const {
    check_pairs(to, from);
    const auto rows = torch::empty(to.sizes(), to.options());
    source().read_into(rows, from.names.front());
    const auto pairs = rows.view({from.n_heads, to.size(0) / (2 * from.n_heads), 2, -1});
    torch::Tensor(to).copy_(pairs.transpose(1, 2).reshape(to.sizes()));
  }

  /// Each head of keys has rows for its queries, its keys and its values in transformers.
  void read_sections(const torch::Tensor& to, const Origin& from) const {
    check_sections(to, from);
    const int64_t K = heads().n_kv_heads, H = heads().n_heads, width = heads().width;
    std::vector<torch::Tensor> parts;
    const auto rows = source().tensor(from.names.front());
    for (const auto& part : rows.split_with_sizes({H * width, K * width, K * width}, 0))
      parts.push_back(in_groups(part, K));
    torch::Tensor(to).copy_(torch::cat(parts, 1).flatten(0, 1));
  }

  std::shared_ptr<const GgufFile> file_;
};

/// Those of transformers as a file has them.
class StoredTensors final : public ReformedTensors {
 public:
  /// `more`: further tensors, by their names in the file.
  StoredTensors(std::shared_ptr<const TensorSource> source, GgufHeads heads, Origins origins,
                std::map<std::string, torch::Tensor> more)
      : ReformedTensors(std::move(source), heads, std::move(origins)), more_(std::move(more)) {}

  std::vector<std::string> names() const override {
    auto result = ReformedTensors::names();
    for (const auto& [name, tensor] : more_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override {
    return more_.contains(name) || ReformedTensors::contains(name);
  }
  Shape shape(const std::string& name) const override {
    const auto found = more_.find(name);
    return found == more_.end() ? ReformedTensors::shape(name) : found->second.sizes().vec();
  }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto found = more_.find(name);
    return found == more_.end() ? ReformedTensors::dtype(name) : found->second.scalar_type();
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto found = more_.find(name);
    if (found == more_.end()) return ReformedTensors::read_into(to, name);
    torch::Tensor(to).copy_(found->second);
  }

 private:
  Shape shape_of(const Origin& from) const override {
    auto shape = source_shape(from);
    switch (from.form) {
      case StoredForm::same:
      case StoredForm::interleaved_rows:
      case StoredForm::plus_one:
      case StoredForm::scaled:
      case StoredForm::sections:
        return shape;
      case StoredForm::transposed:
        std::ranges::reverse(shape);
        return shape;
      case StoredForm::flat:
        return {shape.back()};
      case StoredForm::experts:
        shape.insert(shape.begin(), static_cast<int64_t>(from.names.size()));
        return shape;
      case StoredForm::columns:
        swap_columns(shape);
        return shape;
      case StoredForm::even_columns:
      case StoredForm::odd_columns:
        swap_columns(shape);
        shape[1] /= 2;
        return shape;
      case StoredForm::latent_keys:
        return {heads().n_heads, shape[1], heads().plain_width};
      case StoredForm::latent_values:
        return {heads().n_heads, heads().value_width, shape[1]};
    }
    return shape;
  }

  void read(const torch::Tensor& to, const Origin& from) const override {
    const auto& name = from.names.front();
    const auto target = torch::Tensor(to);
    switch (from.form) {
      case StoredForm::same:
        return source().read_into(to, name);
      case StoredForm::transposed:
        return source().read_into(to.t(), name);
      case StoredForm::interleaved_rows:
        return read_rows(to, from);
      case StoredForm::plus_one:
        target.copy_(source().tensor(name).to(torch::kFloat) + 1);
        return;
      case StoredForm::scaled:
        source().read_into(to, name);
        target.mul_(from.scale);
        return;
      case StoredForm::flat:
        return source().read_into(to.unsqueeze(0), name);
      case StoredForm::sections:
        return read_sections(to, from);
      case StoredForm::experts:
        for (size_t i = 0; i < from.names.size(); ++i)
          source().read_into(to.select(0, static_cast<int64_t>(i)), from.names[i]);
        return;
      case StoredForm::columns:
        return source().read_into(by_columns(to), name);
      case StoredForm::even_columns:
      case StoredForm::odd_columns: {
        const int64_t first = from.form == StoredForm::even_columns ? 0 : 1;
        const auto part = source().tensor(name).unflatten(-1, {-1, 2}).select(-1, first);
        target.copy_(by_columns(part));
        return;
      }
      case StoredForm::latent_keys:
      case StoredForm::latent_values: {
        const auto rows = in_groups(source().tensor(name), heads().n_heads);
        const bool are_keys = from.form == StoredForm::latent_keys;
        target.copy_(are_keys ? rows.narrow(1, 0, heads().plain_width).transpose(1, 2)
                              : rows.narrow(1, heads().plain_width, heads().value_width));
        return;
      }
    }
  }

  void read_rows(const torch::Tensor& to, const Origin& from) const {
    check_pairs(to, from);
    const auto rows = torch::empty(to.sizes(), to.options());
    source().read_into(rows, from.names.front());
    const auto pairs = rows.view({from.n_heads, 2, to.size(0) / (2 * from.n_heads), -1});
    torch::Tensor(to).copy_(pairs.transpose(1, 2).reshape(to.sizes()));
  }

  void read_sections(const torch::Tensor& to, const Origin& from) const {
    check_sections(to, from);
    const int64_t K = heads().n_kv_heads, width = heads().width;
    std::vector<torch::Tensor> parts;
    const auto groups = in_groups(source().tensor(from.names.front()), K);
    for (const auto& part : groups.split_with_sizes({heads().n_heads / K * width, width, width}, 1))
      parts.push_back(part.flatten(0, 1));
    torch::Tensor(to).copy_(torch::cat(parts));
  }

  std::map<std::string, torch::Tensor> more_;
};

/// Adds a link to the origin of a tensor on one side; `name`: of the tensor on the other side.
void add_link(const GgufLink& link, const std::string& name, const GgufHeads& heads, Origin& to) {
  to.form = link.form;
  to.expert = link.expert;
  to.n_heads = link.stored.find("attn_q") != link.stored.npos ? heads.n_heads : heads.n_kv_heads;
  // Of two parts, the gates and the keys are the first.
  const bool is_first = link.form == StoredForm::even_columns || link.form == StoredForm::latent_keys;
  to.names.insert(is_first ? to.names.begin() : to.names.end(), name);
}

/// What a tensor of the file says itself, or config.json has in another form.
bool is_read_elsewhere(const std::string& stored, const nlohmann::json& config) {
  if (is_rotary_tensor(stored)) return true;
  // One matrix, which is stored twice.
  return stored == "output.weight" && config.at("tie_word_embeddings") == true;
}

}  // namespace

std::shared_ptr<const TensorSource> tensors_of_gguf(const std::shared_ptr<const GgufFile>& file,
                                                    const GgufArchitecture& architecture,
                                                    const nlohmann::json& config) {
  const auto heads = gguf_heads(architecture, config);
  Origins origins;
  for (const auto& stored : file->names()) {
    if (is_read_elsewhere(stored, config)) continue;
    const auto shape = file->shape(stored);
    // Of a tensor with the matrices of all experts.
    const int64_t n_experts = shape.empty() ? 0 : std::min(shape.front(), kMostExperts);
    const auto links = links_of_stored(architecture, variant_of(config), n_experts, stored);
    if (links.empty()) {
      throw CheckpointError(fmt::format("{}: the tensor '{}' is not known in the architecture {}",
                                        file->place(), excerpt(stored), architecture.name));
    }
    for (const auto& link : links) add_link(link, stored, heads, origins[link.foreign]);
  }
  return std::make_shared<ForeignTensors>(file, heads, std::move(origins));
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
  const auto heads = gguf_heads(architecture, config);
  std::map<std::string, std::vector<GgufLink>> links;  // by the tensor in the file
  for (const auto& name : foreign->names()) {
    if (is_in_left_out_head(architecture, name)) continue;
    const auto found = links_of_foreign(architecture, variant_of(config), name);
    if (found.empty()) {
      throw CheckpointError(fmt::format("the architecture {} of llama.cpp has no tensor '{}'",
                                        architecture.name, excerpt(name)));
    }
    for (const auto& link : found) links[link.stored].push_back(link);
  }
  Origins origins;
  for (auto& [stored, of_it] : links) {
    std::ranges::sort(of_it, {}, &GgufLink::expert);
    for (const auto& link : of_it) add_link(link, link.foreign, heads, origins[stored]);
  }
  const bool is_tied = config.value("tie_word_embeddings", false);
  const auto scale = is_tied ? scale_of_tied_output(architecture, config) : std::nullopt;
  if (scale || (is_tied && architecture.tied_output == GgufTiedOutput::always_there)) {
    auto output = origins.at("token_embd.weight");
    output.form = scale ? StoredForm::scaled : StoredForm::same;
    output.scale = scale.value_or(1);
    origins.emplace("output.weight", std::move(output));
  }
  return std::make_shared<StoredTensors>(foreign, heads, std::move(origins), std::move(more));
}

}  // namespace zoo
