#include "models/mixers/linformer.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {
namespace {

/// The first T columns of `matrix` (k, n) times x (B, K, T, Dh).
torch::Tensor over_positions(const torch::Tensor& matrix, const torch::Tensor& x) {
  const int64_t length = x.size(2), most = matrix.size(1);
  if (length > most) {
    throw DataError(fmt::format("a sequence of {} tokens is longer than model.max_positions, {}: shorten it",
                                length, most));
  }
  return torch::matmul(matrix.narrow(1, 0, length), x);
}

}  // namespace

PositionProjectionImpl::PositionProjectionImpl(const PositionProjectionOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.n_slots() > 0 && options.n_slots() <= options.n_positions(), options.n_slots(),
              " slots for ", options.n_positions(), " positions");
  const auto drawn = [this] {
    const double root = std::sqrt(static_cast<double>(options.n_slots()));
    return drawn_tensor({options.n_slots(), options.n_positions()},
                        [&](torch::Tensor& matrix) { matrix.normal_().div_(root); });
  };
  keys = register_parameter("keys", drawn());
  if (options.separate_values()) values = register_parameter("values", drawn());
}

torch::Tensor PositionProjectionImpl::project_keys(const torch::Tensor& x) const {
  return over_positions(keys, x);
}

torch::Tensor PositionProjectionImpl::project_values(const torch::Tensor& x) const {
  return over_positions(values.defined() ? values : keys, x);
}

void PositionProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("PositionProjection")
                .add("n_slots", options.n_slots())
                .add("n_positions", options.n_positions())
                .add("separate_values", options.separate_values());
}

LinformerImpl::LinformerImpl(const AttentionOptions& options_, const PositionProjectionOptions& projection,
                             std::shared_ptr<PositionProjectionImpl> shared)
    : Cloneable(options_), shared_(std::move(shared)), projection_(shared_) {
  if (!shared_) projection_ = register_module("projection", PositionProjection(projection));
}

torch::Tensor LinformerImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(!context.mask.is_causal() && !context.state, "a Linformer cannot be causal");
  TORCH_CHECK(!context.maps, "a Linformer has weights of slots, and none of tokens");
  auto heads = heads_of(x, context);
  if (const auto real = real_tokens(context, x.size(1), x.device()); real.defined()) {
    const auto padding = real.logical_not().unsqueeze(1).unsqueeze(-1);  // (B, 1, T, 1)
    heads.k = heads.k.masked_fill(padding, 0);
    heads.v = heads.v.masked_fill(padding, 0);
  }
  return merged(
      fused_attention(heads.q, projection_->project_keys(heads.k), projection_->project_values(heads.v),
                      {.scale = options.scale(),
                       .dropout = is_training() ? options.dropout() : 0.0,
                       .softcap = options.softcap()}),
      context);
}

void LinformerImpl::take_settings(const torch::nn::Module& from) {
  const auto& other = dynamic_cast<const LinformerImpl&>(from);
  if (!shared_ || (shared_ != other.shared_ && !other.is_private_)) return;
  projection_ = shared_ = copy_of(other.shared_, shared_->keys.device());
  is_private_ = true;
}

void LinformerImpl::pretty_print(std::ostream& stream) const {
  stream << described("Linformer")
                .add("scale", options.scale())
                .add("n_slots", projection_->options.n_slots())
                .add("n_positions", projection_->options.n_positions())
                .add("dropout", options.dropout());
}

namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kMostSlots = 1 << 30;

struct LinformerKeys {
  int64_t k = 256;
  LinformerSharing share = LinformerSharing::heads;
};

void describe(ConfigVisitor& v, LinformerKeys& keys) {
  v.field("k", keys.k, "Slots onto which keys and values are projected, at most max_positions.",
          Limits::between(1, kMostSlots));
  v.field("share", keys.share,
          "Which projections are the same: of all heads, also of keys and values, or of all layers.");
}

PositionProjectionOptions projection_options(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  return PositionProjectionOptions(keys.k, place.model.max_positions)
      .separate_values(keys.share == LinformerSharing::heads);
}

std::string shared_name(const LinformerKeys& keys) { return fmt::format("linformer_{}", keys.k); }

std::shared_ptr<MixerImpl> make_linformer(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  const auto attention = self_attention_options(place);
  const auto projection = projection_options(place);
  std::shared_ptr<PositionProjectionImpl> shared;
  if (keys.share == LinformerSharing::layer && place.shared)
    shared = place.shared->get<PositionProjectionImpl>(
        shared_name(keys), [&] { return std::make_shared<PositionProjectionImpl>(projection); });
  return std::make_shared<LinformerImpl>(attention, projection, shared);
}

/// Whether an earlier layer of the stack has the same shared projection.
bool is_made_earlier(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  for (int64_t layer = 0; layer < place.layer; ++layer) {
    const auto& other = place.model.attention_of(layer);
    if (other.type != place.selection().type) continue;
    const auto& theirs = other.as<LinformerKeys>();
    if (theirs.share == LinformerSharing::layer && theirs.k == keys.k) return true;
  }
  return false;
}

void count_position_projection(CostAccount& account, std::string name,
                               const PositionProjectionOptions& options) {
  const int64_t n_matrices = options.separate_values() ? 2 : 1;
  account.add({.name = std::move(name),
               .kind = "linear",
               .shape = account.text("{} × {} → {}", n_matrices, options.n_positions(), options.n_slots())});
}

void count_linformer(CostAccount& account, std::string name, const AttentionOptions& options, int64_t n_slots,
                     const AttentionShape& shape) {
  const HeadSizes sizes(options);
  const double n_tokens = static_cast<double>(shape.batch_size) * static_cast<double>(shape.n_queries);
  const auto slots = static_cast<double>(n_slots);
  const double products = static_cast<double>(sizes.matrices()) +
                          2 * slots * static_cast<double>(sizes.q_width() + sizes.kv_width());
  const double kept = static_cast<double>(2 * sizes.q_width() + 2 * sizes.kv_width() + sizes.d_model);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? fmt::format("{}, {} slots", sizes.text(), n_slots) : std::string(),
       .flops = 2 * n_tokens * products,
       .activation_bytes = bytes_of(n_tokens * kept + static_cast<double>(shape.batch_size) * 2 * slots *
                                                          static_cast<double>(sizes.kv_width()))});
}

void count_linformer_layer(CostAccount& account, const std::string& name, const MixerPlace& place,
                           const AttentionShape& shape) {
  const auto& keys = place.selection().as<LinformerKeys>();
  count_linformer(account, name, self_attention_options(place), keys.k, shape);
  if (keys.share != LinformerSharing::layer) {
    count_position_projection(account, account.path(name, "projection"), projection_options(place));
  } else if (!is_made_earlier(place)) {
    const auto stack = name.substr(0, name.find(".layers."));
    count_position_projection(account, account.path(stack, shared_name(keys)), projection_options(place));
  }
}

void validate_linformer(const MixerPlace& place, const ComplainAboutMixer& complain) {
  const int64_t k = place.selection().as<LinformerKeys>().k, most = place.model.max_positions;
  if (place.is_causal()) {
    complain(
        "linformer cannot be causal, because a slot mixes all positions: it is for encoders; in a decoder "
        "choose linear, performer, delta or full");
  }
  if (k > most)
    complain(fmt::format("linformer: k {} is more than max_positions {}: set a smaller k", k, most));
  require_positions(place, MixerPositions::absolute, complain);
}

}  // namespace

MixerType linformer_mixer() {
  MixerType type;
  type.name = "linformer";
  type.doc = "Linformer (Wang et al. 2020): attention over projected positions; for encoders.";
  type.complexity = "nkd";
  type.make_options = options_of<LinformerKeys>();
  type.make = make_linformer;
  type.count = count_linformer_layer;
  type.validate = validate_linformer;
  type.no_maps = "has weights of slots rather than of tokens";
  return type;
}

}  // namespace zoo
