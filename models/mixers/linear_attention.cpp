#include "models/mixers/linear_attention.h"

#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "models/mixers/mixer_checks.h"

namespace zoo {
namespace {

torch::Tensor elu_features(const torch::Tensor& x) { return torch::elu(x) + 1; }

}  // namespace

LinearAttentionImpl::LinearAttentionImpl(const AttentionOptions& options_) : Cloneable(options_) {
  TORCH_CHECK(options.dropout() == 0, "linear attention has no weights that could be dropped");
  TORCH_CHECK(!options.scale(), "linear attention has no scores that could be scaled");
}

torch::Tensor LinearAttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  const auto heads = heads_of(x, context);
  const auto real = real_tokens(context, x.size(1), x.device());
  constexpr double eps = 1e-6;  // as in fast-transformers
  torch::Tensor mixed;
  {
    const FullPrecision full(x.device());
    Features features{
        .q = elu_features(full(heads.q)), .k = elu_features(full(heads.k)), .v = full(heads.v), .eps = eps};
    if (context.rotary && context.rotary->defined()) {
      features.q_above = context.rotary->apply(features.q);
      features.k_above = context.rotary->apply(features.k);
    }
    mixed = attend(std::move(features), real, context);
  }
  return merged(mixed.to(x.scalar_type()), context);
}

std::unique_ptr<LayerState> LinearAttentionImpl::new_state(int64_t n_rows) const {
  return std::make_unique<RunningState>(
      std::vector<torch::Tensor>{empty_state(out, {n_rows, n_kv_heads(), head_dim(), head_dim() + 1})});
}

void LinearAttentionImpl::pretty_print(std::ostream& stream) const { stream << described("LinearAttention"); }

namespace {

void count_linear_attention(CostAccount& account, std::string name, const MixerPlace& place,
                            const AttentionShape& shape) {
  const auto options = self_attention_options(place);
  const HeadSizes sizes(options);
  const bool rotary = place.model.position == Position::rotary;
  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  const auto cost =
      feature_cost(sizes, sizes.head_dim, place.direction(),
                   rotary ? Normalisation::sum_of_its_own : Normalisation::one_sum, shape.n_queries);
  const auto projected = static_cast<double>(2 * sizes.q_width() + 2 * sizes.kv_width() + sizes.d_model);
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.is_detailed() ? "linear, " + sizes.text() : "",
               .flops = 2 * (n_tokens * static_cast<double>(sizes.matrices()) + n_rows * cost.products),
               .activation_bytes = n_tokens * bytes_of(projected + cost.kept),
               .state_bytes =
                   place.is_causal() ? sizes.kv_width() * (sizes.head_dim + 1) * kFloatBytes : int64_t{0}});
}

}  // namespace

MixerType linear_mixer() {
  MixerType type;
  type.name = "linear";
  type.doc = "Linear attention (Katharopoulos et al. 2020): elu + 1 in place of softmax.";
  type.complexity = "nd²";
  type.make = makes<LinearAttentionImpl>(self_attention_options);
  type.count = count_linear_attention;
  type.validate = [](const MixerPlace& place, const ComplainAboutMixer& complain) {
    refuse_scores(place, MixerPositions::absolute_or_rotary, complain);
  };
  return type;
}

}  // namespace zoo
