#include "models/mixers/disentangled_attention.h"

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/dropout.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {
namespace {

int64_t span_of(const DisentangledKeys& keys) { return keys.buckets > 0 ? keys.buckets : keys.max_distance; }

/// How many products are added up in a score.
int64_t parts_of(const DisentangledKeys& keys) {
  return 1 + (keys.content_to_position ? 1 : 0) + (keys.position_to_content ? 1 : 0);
}

}  // namespace

RelativeVectorsImpl::RelativeVectorsImpl(const RelativeVectorsOptions& options_) : options(options_) {
  table = register_module("table", make_table(2 * options.span(), options.d_model()));
  if (options.norm()) norm = register_module("norm", Norm(*options.norm()));
}

torch::Tensor RelativeVectorsImpl::forward() { return norm ? norm(table->weight) : table->weight; }

void RelativeVectorsImpl::pretty_print(std::ostream& stream) const {
  stream << Description("RelativeVectors").add("span", options.span()).add("d_model", options.d_model());
}

torch::Tensor rows_of_distances(const DisentangledKeys& keys, int64_t n) {
  const int64_t span = span_of(keys);
  const auto distances = torch::arange(-(n - 1), n, torch::kLong);
  auto buckets = distances;
  if (keys.buckets > 0) {
    // The operations and their types are those of the authors, so that no distance falls on the other side
    // of a bound.
    const int64_t middle = keys.buckets / 2;
    const double most = static_cast<double>(keys.max_distance - 1) / static_cast<double>(middle);
    const auto far =
        torch::where(distances.abs() < middle, torch::full_like(distances, middle - 1), distances.abs());
    const auto share = torch::log(far / middle) / torch::log(torch::full({}, most, torch::kFloat));
    const auto logarithms = torch::ceil(share * (middle - 1)) + middle;
    buckets = torch::where(far <= middle, distances.to(torch::kFloat), logarithms * distances.sign())
                  .to(torch::kLong);
  }
  return (buckets + span).clamp(0, 2 * span - 1);
}

DisentangledAttentionImpl::DisentangledAttentionImpl(const AttentionOptions& options_,
                                                     const DisentangledOptions& more,
                                                     std::shared_ptr<RelativeVectorsImpl> shared)
    : Cloneable(options_), more_(more), shared_(std::move(shared)), vectors_(shared_) {
  if (!shared_) vectors_ = register_module("relative_vectors", RelativeVectors(more_.vectors()));
  if (more_.keys().share_keys) return;
  const auto map = [&](WeightUse use) {
    return Linear(linear_options(d_model_, options.n_heads() * head_dim_, use).bias(options.qkv_bias()));
  };
  if (more_.keys().content_to_position)
    position_key = register_module("position_key", map(WeightUse::hidden));
  if (more_.keys().position_to_content)
    position_query = register_module("position_query", map(WeightUse::query));
}

torch::Tensor DisentangledAttentionImpl::map_of_vectors(const torch::Tensor& vectors, Linear& own,
                                                        size_t part) {
  const auto mapped = own   ? own(vectors)
                      : qkv ? qkv->forward_some(vectors, {.first = part, .count = 1})
                            : (part == 0 ? q : k)(vectors);
  return split_heads(mapped, options.n_heads());
}

torch::Tensor DisentangledAttentionImpl::bias_of_distances(const Heads& heads, double scale) {
  const int64_t B = heads.q.size(0), H = heads.q.size(1), T = heads.q.size(2);
  const auto positions = torch::arange(T, torch::kLong);
  const auto rows = rows_of_distances(more_.keys(), T)
                        .index({positions.unsqueeze(1) - positions + (T - 1)})  // (T, T), of i - j
                        .to(heads.q.device())
                        .expand({B, H, T, T});
  const auto vectors =
      dropout(vectors_->forward(), is_training() ? more_.dropout() : 0.0).unsqueeze(0);  // (1, 2 P, D)
  torch::Tensor scores;
  if (more_.keys().content_to_position) {
    const auto keys = map_of_vectors(vectors, position_key, 1);
    scores = torch::matmul(heads.q, keys.transpose(-2, -1)).gather(-1, rows);
  }
  if (more_.keys().position_to_content) {
    const auto queries = map_of_vectors(vectors, position_query, 0);
    const auto of_keys = torch::matmul(queries, heads.k.transpose(-2, -1)).gather(-2, rows);
    scores = scores.defined() ? scores + of_keys : of_keys;
  }
  return scores.defined() ? scores * scale : scores;
}

torch::Tensor DisentangledAttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(!context.mask.is_causal() && !context.state, "disentangled attention cannot be causal");
  const auto heads = heads_of(x, context);
  const double usual = 1 / std::sqrt(static_cast<double>(head_dim_ * parts_of(more_.keys())));
  const double scale = options.scale().value_or(usual);
  const ScaledDotProductOptions call{.mask = context.mask.shared(),
                                     .bias = bias_of_distances(heads, scale),
                                     .scale = scale,
                                     .dropout = is_training() ? options.dropout() : 0.0,
                                     .softcap = options.softcap()};
  if (!context.maps) return merged(fused_attention(heads.q, heads.k, heads.v, call), context);
  const auto result = explicit_attention(heads.q, heads.k, heads.v, call);
  context.maps->push_back(result.weights);
  return merged(result.output, context);
}

void DisentangledAttentionImpl::take_settings(const torch::nn::Module& from) {
  const auto& other = dynamic_cast<const DisentangledAttentionImpl&>(from);
  if (!shared_ || (shared_ != other.shared_ && !other.is_private_)) return;
  vectors_ = shared_ = copy_of(other.shared_, shared_->table->weight.device());
  is_private_ = true;
}

void DisentangledAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << described("DisentangledAttention")
                .add("scale", options.scale())
                .add("span", more_.vectors().span())
                .add("dropout", options.dropout());
}

void describe(ConfigVisitor& v, DisentangledKeys& keys) {
  constexpr double most = 1 << 20;
  v.field("buckets", keys.buckets,
          "P: distances below P / 2 have vectors of their own, and longer ones share them by their "
          "logarithms; 0: each has its own, up to max_distance.",
          Limits::between(0, most));
  v.field("max_distance", keys.max_distance, "From this distance on all are alike.",
          Limits::between(2, most));
  v.field("content_to_position", keys.content_to_position, "Scores compare queries with distances.");
  v.field("position_to_content", keys.position_to_content, "Scores compare distances with keys.");
  v.field("share_keys", keys.share_keys, "Vectors of distances go through the maps of queries and keys.");
  v.field("norm", keys.norm, "A norm on the vectors of distances.");
}

std::string name_of_vectors(const DisentangledKeys& keys) {
  return fmt::format("relative_vectors_{}{}", span_of(keys), keys.norm ? "" : "_plain");
}

namespace {

DisentangledOptions disentangled_options(const MixerPlace& place) {
  const auto& config = place.model;
  const auto& keys = place.selection().as<DisentangledKeys>();
  RelativeVectorsOptions vectors(span_of(keys), config.d_model);
  if (keys.norm) vectors.norm(norm_options(config, config.d_model));
  return DisentangledOptions(vectors).keys(keys).dropout(config.dropout);
}

std::shared_ptr<MixerImpl> make_disentangled(const MixerPlace& place) {
  const auto options = disentangled_options(place);
  std::shared_ptr<RelativeVectorsImpl> shared;
  if (place.shared)
    shared = place.shared->get<RelativeVectorsImpl>(name_of_vectors(options.keys()), [&] {
      return std::make_shared<RelativeVectorsImpl>(options.vectors());
    });
  return std::make_shared<DisentangledAttentionImpl>(self_attention_options(place), options, shared);
}

bool is_first_with_vectors(const MixerPlace& place) {
  const auto name = name_of_vectors(place.selection().as<DisentangledKeys>());
  for (int64_t layer = 0; layer < place.layer; ++layer) {
    const auto& other = place.model.attention_of(layer);
    if (other.type == place.selection().type && name_of_vectors(other.as<DisentangledKeys>()) == name)
      return false;
  }
  return true;
}

void count_disentangled(CostAccount& account, const std::string& name, const MixerPlace& place,
                        const AttentionShape& shape) {
  const auto& keys = place.selection().as<DisentangledKeys>();
  const auto options = disentangled_options(place);
  const HeadSizes sizes(self_attention_options(place));
  const auto n_rows = static_cast<double>(shape.batch_size), n = static_cast<double>(shape.n_queries),
             n_vectors = static_cast<double>(2 * span_of(keys)), width = static_cast<double>(sizes.q_width()),
             d_model = static_cast<double>(sizes.d_model), n_heads = static_cast<double>(sizes.n_heads);
  const auto kinds = static_cast<double>(parts_of(keys) - 1);  // of scores with distances
  const double products = n_rows * n * static_cast<double>(sizes.matrices()) +
                          n_rows * n * width * (2 * n + kinds * n_vectors) +
                          kinds * n_vectors * width * d_model;
  const double kept = n_rows * n * (4 * width + d_model + n_heads * (2 * n + kinds * n_vectors));
  account.add({.name = name,
               .kind = "self-attention",
               .shape = account.is_detailed() ? "disentangled, " + sizes.text() : std::string(),
               .flops = 2 * products,
               .activation_bytes = bytes_of(kept)});
  if (!is_first_with_vectors(place)) return;
  const auto vectors = account.path(name.substr(0, name.find(".layers.")), name_of_vectors(keys));
  count_table(account, account.path(vectors, "table"), 2 * span_of(keys), place.model.d_model);
  if (const auto& norm = options.vectors().norm())
    count_norms(account, account.path(vectors, "norm"), *norm, 1, n_vectors);
}

void validate_disentangled(const MixerPlace& place, const ComplainAboutMixer& complain) {
  const auto& config = place.model;
  const auto& keys = place.selection().as<DisentangledKeys>();
  if (place.is_causal())
    complain("disentangled sees all tokens, and it is for encoders: in a decoder choose full");
  require_positions(place, MixerPositions::absolute, complain);
  if (config.kv_heads() != config.n_heads)
    complain("disentangled has as many heads of keys as of queries: leave out model.n_kv_heads");
  if (config.qk_norm) complain("disentangled has no norms of queries and keys: leave out model.qk_norm");
  if (!keys.content_to_position && !keys.position_to_content)
    complain("disentangled compares with no distance: choose full, or set one of both to true");
  constexpr int64_t least = 4;
  if (keys.buckets != 0 && keys.buckets < least) complain("disentangled: buckets must be 0, or at least 4");
  if (keys.buckets >= least && keys.max_distance <= keys.buckets / 2 + 1)
    complain("disentangled: max_distance must be greater than buckets / 2 + 1");
}

}  // namespace

MixerType disentangled_mixer() {
  MixerType type;
  type.name = "disentangled";
  type.doc = "Disentangled attention (DeBERTa): also compares contents with distances; for encoders.";
  type.make_options = options_of<DisentangledKeys>();
  type.make = make_disentangled;
  type.count = count_disentangled;
  type.validate = validate_disentangled;
  return type;
}

}  // namespace zoo
