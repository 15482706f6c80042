#include "models/mixers/performer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/weights/construction.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {
namespace {

// The authors' numerical_stabilizer, added to every feature.
constexpr double kSmallestFeature = 1e-6;
// Rows that see no key get zeros.
constexpr double kSmallestNormaliser = 1e-20;

}  // namespace

int64_t default_features(int64_t head_dim) {
  const auto width = static_cast<double>(head_dim);
  return std::max<int64_t>(std::llround(width * std::log(width)), 1);
}

torch::Tensor orthogonal_features(int64_t n_features, int64_t head_dim) {
  std::vector<torch::Tensor> blocks;
  for (int64_t left = n_features; left > 0; left -= head_dim) {
    // LAPACK chooses the signs of R's diagonal. Only with positive ones has Q no preferred directions, and
    // without that the estimate would not converge to the softmax kernel.
    const auto [orthogonal, triangular] = torch::linalg_qr(torch::randn({head_dim, head_dim}));
    const auto uniform = orthogonal * triangular.diagonal().sign();
    blocks.push_back(uniform.t().narrow(0, 0, std::min(left, head_dim)));
  }
  const auto norms = torch::randn({n_features, head_dim}).norm(2, 1, /*keepdim=*/true);
  return torch::cat(blocks) * norms;
}

PerformerImpl::PerformerImpl(const PerformerOptions& options_)
    : Cloneable(options_.attention()), performer_options_(options_) {
  TORCH_CHECK(options.dropout() == 0, "Performer has no weights that could be dropped");
  const int64_t n_features = options_.n_features().value_or(default_features(head_dim()));
  TORCH_CHECK(n_features > 0, "Performer needs at least one feature");
  features = register_buffer("features", drawn_tensor({n_features, head_dim()}, [&](torch::Tensor& drawn) {
                               drawn = orthogonal_features(n_features, head_dim());
                             }));
}

/// φ(x) = (exp(along - half - stabiliser) + ε)/√m
struct PerformerImpl::Exponents {
  torch::Tensor along;  // (B, H, T, m): w·x
  torch::Tensor half;   // (B, H, T, 1): |x|²/2

  /// `stabiliser` broadcasts to (B, H, T, 1).
  torch::Tensor features(const torch::Tensor& stabiliser) const {
    const double factor = 1 / std::sqrt(static_cast<double>(along.size(-1)));
    return factor * ((along - half - stabiliser).exp() + kSmallestFeature);
  }
};

PerformerImpl::Exponents PerformerImpl::exponents(const torch::Tensor& x) const {
  const double scale = options.scale().value_or(1 / std::sqrt(static_cast<double>(head_dim())));
  const auto scaled = x * std::sqrt(scale);
  return {.along = torch::matmul(scaled, features.to(scaled.dtype()).t()),
          .half = scaled.square().sum(-1, /*keepdim=*/true) / 2};
}

torch::Tensor PerformerImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  auto heads = heads_of(x, context);
  if (context.rotary && context.rotary->defined()) {
    heads.q = context.rotary->apply(heads.q);
    heads.k = context.rotary->apply(heads.k);
  }
  const auto real = real_tokens(context, x.size(1), x.device());
  const bool causal = context.mask.is_causal() || context.state;
  auto* const state = dynamic_cast<RunningState*>(context.state);
  torch::Tensor mixed;
  {
    const FullPrecision full(x.device());
    const auto of_q = exponents(full(heads.q)), of_k = exponents(full(heads.k));
    // Stabilisers cancel in the fraction, so they need no gradient.
    auto largest = of_k.along.detach().amax(-1);  // (B, K, T)
    if (real.defined())
      largest = largest.masked_fill(real.logical_not().unsqueeze(1), std::numeric_limits<float>::lowest());
    Features f{.v = full(heads.v), .eps = kSmallestNormaliser};
    f.q = of_q.features(of_q.along.detach().amax(-1, /*keepdim=*/true));
    torch::Tensor stabiliser;  // (B, K, T) or (B, K, 1)
    if (causal) {
      // A row that has read nothing begins with 0.
      const auto before = state ? state->tensor(1) : torch::zeros({x.size(0), n_kv_heads()}, f.q.options());
      stabiliser = torch::maximum(std::get<0>(largest.cummax(-1)), before.unsqueeze(-1));
      const auto previous =
          torch::cat({before.unsqueeze(-1), stabiliser.narrow(-1, 0, stabiliser.size(-1) - 1)}, -1);
      f.log_decay = previous - stabiliser;
    } else {
      stabiliser = largest.amax(-1, /*keepdim=*/true);
    }
    f.k = of_k.features(stabiliser.unsqueeze(-1));
    mixed = attend(std::move(f), real, context);
    if (state) state->set(1, stabiliser.select(-1, stabiliser.size(-1) - 1));
  }
  return merged(mixed.to(x.scalar_type()), context);
}

std::unique_ptr<LayerState> PerformerImpl::new_state(int64_t n_rows) const {
  return std::make_unique<RunningState>(
      std::vector<torch::Tensor>{empty_state(out, {n_rows, n_kv_heads(), features.size(0), head_dim() + 1}),
                                 empty_state(out, {n_rows, n_kv_heads()})});
}

void PerformerImpl::pretty_print(std::ostream& stream) const {
  stream << described("Performer").add("scale", options.scale()).add("n_features", features.size(0));
}

namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kMostFeatures = 1 << 20;

struct PerformerKeys {
  std::optional<int64_t> n_features;
};

void describe(ConfigVisitor& v, PerformerKeys& keys) {
  v.field("n_features", keys.n_features, "Random features of a head; default head_dim ln head_dim, rounded.",
          Limits::between(1, kMostFeatures));
}

PerformerOptions performer_options(const MixerPlace& place) {
  return PerformerOptions(self_attention_options(place))
      .n_features(place.selection().as<PerformerKeys>().n_features);
}

void count_performer(CostAccount& account, std::string name, const MixerPlace& place,
                     const AttentionShape& shape) {
  const auto options = performer_options(place);
  const HeadSizes sizes(options.attention());
  const int64_t m = options.n_features().value_or(default_features(sizes.head_dim));
  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  // Rotary positions come before the features: they do not divide the sums as in linear attention.
  const auto cost = feature_cost(sizes, m, place.direction(), Normalisation::one_sum, shape.n_queries);
  const auto projected = static_cast<double>(3 * sizes.q_width() + 3 * sizes.kv_width() + sizes.d_model);
  const auto features = static_cast<double>((sizes.q_width() + sizes.kv_width()) * m);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? fmt::format("{}, {} features", sizes.text(), m) : std::string(),
       .flops = 2 * (n_tokens * (static_cast<double>(sizes.matrices()) + features) + n_rows * cost.products),
       .activation_bytes = n_tokens * bytes_of(projected + cost.kept),
       .state_bytes =
           place.is_causal() ? sizes.n_kv_heads * (m * (sizes.head_dim + 1) + 1) * kFloatBytes : int64_t{0}});
}

}  // namespace

MixerType performer_mixer() {
  MixerType type;
  type.name = "performer";
  type.doc = "Performer (Choromanski et al. 2020): softmax estimated by random features.";
  type.complexity = "nmd";
  type.make_options = options_of<PerformerKeys>();
  type.make = makes<PerformerImpl>(performer_options);
  type.count = count_performer;
  type.validate = [](const MixerPlace& place, const ComplainAboutMixer& complain) {
    require_positions(place, MixerPositions::absolute_or_rotary, complain);
    refuse_dropout(place, complain);
    refuse_softcap(place, complain);
  };
  return type;
}

}  // namespace zoo
