#include "analysis/causes/contributions.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/frozen.h"
#include "analysis/causes/recorder.h"
#include "base/error.h"
#include "layers/attention/qkv_projections.h"
#include "models/config/layer_types.h"
#include "models/heads.h"
#include "models/inference_scope.h"
#include "models/mixers/latent_attention.h"

namespace zoo {
namespace {

/// What a module makes of the parts of its input, where it is linear but for a bias.
class LinearSteps {
 public:
  /// `map`: (N, I) → (N, O) of the model's own numbers.
  LinearSteps(std::function<torch::Tensor(const torch::Tensor&)> map, torch::ScalarType type,
              torch::Device device)
      : map_(std::move(map)), options_(torch::dtype(type).device(device)) {}
  torch::Tensor bias(int64_t n_inputs) const {
    return map_(torch::zeros({1, n_inputs}, options_)).to(torch::kCPU, torch::kDouble);  // (1, O)
  }
  torch::Tensor without_bias(const torch::Tensor& part) const {
    return map_(part.to(options_)).to(torch::kCPU, torch::kDouble) - bias(part.size(-1));
  }

 private:
  std::function<torch::Tensor(const torch::Tensor&)> map_;
  torch::TensorOptions options_;
};

/// The last stack of a model in one pass, at the positions that the head reads.
class Attribution {
 public:
  Attribution(Model& model, const Batch& batch, int64_t place);
  Contributions of_output(int64_t output);

 private:
  torch::Tensor at_positions(ActivationKind kind, int64_t layer) const;  // (P, …)
  bool has(ActivationKind kind, int64_t layer) const;
  void add_layer(int64_t layer);
  Parts sub_layer(int64_t layer, size_t index) const;
  Parts heads_of(ActivationKind kind, int64_t layer, const LinearImpl& out, const std::string& name) const;
  void read_head();

  Model& model_;
  StackSide side_ = StackSide::only;
  std::shared_ptr<StackImpl> stack_;
  std::shared_ptr<ModelHeadImpl> head_;
  Activations activations_;
  torch::Tensor positions_;  // (P) int64
  torch::Tensor features_;   // (D): what the model projects
  Parts parts_;
};

std::shared_ptr<ModelHeadImpl> head_of(const Model& model) {
  for (const auto& module : model.modules())
    if (auto head = std::dynamic_pointer_cast<ModelHeadImpl>(module)) return head;
  return nullptr;
}

[[noreturn]] void refuse() {
  throw UsageError(
      "the outputs of this model are not made from one vector of its last layers by a norm and a head, so "
      "their parts cannot be told: choose a decoder, an encoder, an encoder_decoder or a vit with `pooling: "
      "class` or `mean`");
}

Attribution::Attribution(Model& model, const Batch& batch, int64_t place)
    : model_(model), head_(head_of(model)), activations_(record_activations(model, batch)) {
  stack_ = stacks_of(model).back();
  if (!head_) refuse();
  if (stacks_of(model).size() > 1) side_ = StackSide::decoder;
  features_ = model.features(batch)[place];
  const int64_t length =
      activations_.at({.kind = ActivationKind::residual, .layer = 0, .side = side_}).size(1);
  if (batch.positions.defined()) {
    positions_ = batch.positions.to(torch::kCPU).narrow(0, place, 1);
  } else if (const auto grid =
                 batch.fields.contains(fields::kImages) ? model.patch_grid(batch) : std::nullopt) {
    // A class token, or the mean of all patches.
    positions_ = grid->n_before > 0 ? torch::zeros({1}, torch::kInt64) : torch::arange(length, torch::kInt64);
  } else {
    const bool last = side_ == StackSide::decoder && !model.generative();
    positions_ = torch::full({1}, last ? length - 1 : place, torch::kInt64);
  }
  parts_.add(ActivationPlace{.kind = ActivationKind::residual, .layer = 0, .side = side_}.name(),
             at_positions(ActivationKind::residual, 0));
  for (int64_t layer = 0; layer < std::ssize(stack_->layers); ++layer) add_layer(layer);
  if (stack_->final_norm) normalise(parts_, *stack_->final_norm);
  if (positions_.size(0) > 1)
    parts_.transform([](const torch::Tensor& x) { return x.mean(0, /*keepdim=*/true); });
  read_head();
  if (parts_.sum().size(-1) != features_.size(0)) refuse();  // the classifier reads a pair of vectors
  const auto difference =
      (parts_.sum()[0] - features_.to(torch::kCPU, torch::kDouble)).abs().max().item<double>();
  const double size = std::max(1.0, features_.abs().max().item<double>());
  if (!(difference <= 1e-2 * size)) refuse();
}

torch::Tensor Attribution::at_positions(ActivationKind kind, int64_t layer) const {
  const auto& x = activations_.at({.kind = kind, .layer = layer, .side = side_});
  return x[0].index_select(0, positions_.to(x.device()));
}

bool Attribution::has(ActivationKind kind, int64_t layer) const {
  return activations_.contains({.kind = kind, .layer = layer, .side = side_});
}

/// What each head brings through the output projection, and its bias.
Parts Attribution::heads_of(ActivationKind kind, int64_t layer, const LinearImpl& out,
                            const std::string& name) const {
  const auto heads = at_positions(kind, layer);  // (P, H, Dh)
  const LinearSteps steps([&](const torch::Tensor& x) { return out.forward(x); }, heads.scalar_type(),
                          heads.device());
  Parts parts;
  for (int64_t h = 0; h < heads.size(1); ++h) {
    auto alone = torch::zeros_like(heads);
    alone.select(1, h).copy_(heads.select(1, h));
    parts.add(fmt::format("{}.heads.{}", name, h), steps.without_bias(alone.flatten(1)));
  }
  const auto bias = steps.bias(heads.size(1) * heads.size(2));
  if (bias.ne(0).any().item<bool>()) parts.add(name + ".bias", bias.expand({heads.size(0), bias.size(1)}));
  return parts;
}

/// The map from heads to the stream, in a mixer that has one.
const LinearImpl* map_of_heads(const MixerImpl* mixer) {
  if (const auto* const usual = dynamic_cast<const QkvProjectionsImpl*>(mixer)) return usual->out.get();
  if (const auto* const latent = dynamic_cast<const LatentAttentionImpl*>(mixer)) return latent->out.get();
  return nullptr;
}

/// What a sub-layer adds to the stream.
Parts Attribution::sub_layer(int64_t layer, size_t index) const {
  const auto& module = *stack_->layers[static_cast<size_t>(layer)];
  const bool is_cross = module.cross_attention && index == 1;
  const bool is_attention = index == 0 || is_cross;
  const auto kind = !is_attention ? ActivationKind::feed_forward
                    : is_cross    ? ActivationKind::cross_attention
                                  : ActivationKind::attention;
  const auto heads_kind = is_cross ? ActivationKind::cross_attention_heads : ActivationKind::attention_heads;
  const auto name = ActivationPlace{.kind = kind, .layer = layer, .side = side_}.name();
  const auto added = at_positions(kind, layer);
  const MixerImpl* const mixer = is_cross ? module.cross_attention.get() : module.self_attention.get();
  const auto* const out = is_attention ? map_of_heads(mixer) : nullptr;
  Parts parts;
  if (!out || !has(heads_kind, layer)) {
    parts.add(name, added);
    return parts;
  }
  parts = heads_of(heads_kind, layer, *out, name);
  const auto& residual = *module.residual;
  if (!residual.norms_out.empty()) {
    Parts through = parts;
    const FrozenNorm norm(*residual.norms_out[index], parts.sum());
    through.transform(norm);
    if (norm.bias().defined()) through.add_to(name + ".bias", norm.bias().expand_as(parts.sum()));
    parts = through;
  }
  if (const double scale = residual.options.scale(); scale != 1)
    parts.transform([&](const torch::Tensor& x) { return x * scale; });
  if (!residual.scales.empty()) {
    const auto scale = residual.scales[index].detach().to(torch::kCPU, torch::kDouble);
    parts.transform([&](const torch::Tensor& x) { return x * scale; });
  }
  return parts;
}

void Attribution::add_layer(int64_t layer) {
  const auto& module = *stack_->layers[static_cast<size_t>(layer)];
  const auto& residual = *module.residual;
  for (size_t index = 0; index < residual.options.sub_layers().size(); ++index) {
    const auto added = sub_layer(layer, index);
    for (size_t i = 0; i < added.names().size(); ++i) parts_.add(added.names()[i], added.parts()[i]);
    if (residual.options.placement() == NormPlacement::post) normalise(parts_, *residual.norms_in[index]);
  }
}

/// The dense maps of a head before its last one.
void Attribution::read_head() {
  auto* const dense = head_->transform ? head_->transform.get()
                      : head_->pooler  ? head_->pooler.get()
                                       : nullptr;
  if (!dense) return;
  const LinearSteps steps([&](const torch::Tensor& x) { return dense->forward(x); }, features_.scalar_type(),
                          features_.device());
  const auto bias = steps.bias(parts_.sum().size(-1));
  const auto hidden = parts_.sum();
  parts_.transform([&](const torch::Tensor& x) { return steps.without_bias(x); });
  parts_.add("head.bias", bias);
  if (head_->transform && !head_->norm) return;  // a map to the width of the embeddings
  const auto before = parts_.sum();
  const auto& config = std::get<0>(head_->arguments());
  // A pooler ends in its activation; the head of a masked language model has a norm behind it.
  const auto after = head_->transform
                         ? (*activation_of(config))(before.to(features_.scalar_type()).to(features_.device()))
                         : head_->prepare(hidden.to(features_.scalar_type()).to(features_.device()));
  const auto factor = (after.to(torch::kCPU, torch::kDouble) / before).nan_to_num(0, 0, 0);
  parts_.transform([&](const torch::Tensor& x) { return x * factor; });
  if (head_->transform) normalise(parts_, *head_->norm);
}

Contributions Attribution::of_output(int64_t output) {
  const auto logit_of = [&](const torch::Tensor& x) { return model_.logits(x).narrow(-1, output, 1); };
  const auto cap = head_->output ? head_->output->options.softcap() : std::nullopt;
  const auto uncapped = [&](const torch::Tensor& x) {
    const auto logit = logit_of(x).to(torch::kDouble);
    return cap ? *cap * torch::atanh(logit / *cap) : logit;
  };
  const LinearSteps steps(uncapped, features_.scalar_type(), features_.device());
  Contributions result{.logit = logit_of(features_.unsqueeze(0)).item<double>()};
  const auto bias = steps.bias(features_.size(0)).item<double>();
  const auto parts = torch::cat(parts_.parts());  // (parts, D)
  // A cap is linear near zero only, so long vectors are shortened for it.
  const double shorter = cap ? std::max(1.0, parts.abs().max().item<double>() * 100) : 1.0;
  std::vector<double> logits;
  double sum = bias;
  for (const auto& chunk : parts.split(64)) {
    const auto found = steps.without_bias(chunk / shorter) * shorter;
    for (int64_t i = 0; i < found.size(0); ++i) {
      logits.push_back(found[i].item<double>());
      sum += logits.back();
    }
  }
  // A cap keeps its factor, too.
  const double factor = cap && sum != 0 ? result.logit / sum : 1.0;
  for (size_t i = 0; i < logits.size(); ++i) result.parts.push_back({parts_.names()[i], logits[i] * factor});
  if (bias != 0) {
    const auto found = std::ranges::find(result.parts, "head.bias", &Contribution::name);
    if (found == result.parts.end()) {
      result.parts.push_back({"head.bias", bias * factor});
    } else {
      found->logit += bias * factor;
    }
  }
  return result;
}

}  // namespace

Contributions logit_contributions(Model& model, const Batch& batch, int64_t place, int64_t output) {
  const InferenceScope inference(model);
  if (stacks_of(model).empty()) refuse();
  Attribution attribution(model, batch, place);
  return attribution.of_output(output);
}

}  // namespace zoo
