#include "layers/residual.h"

#include <utility>

#include <torch/types.h>

#include "kernels/dropout.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

ResidualImpl::ResidualImpl(const ResidualOptions& options_) : options(options_) {
  const auto placement = options.placement();
  TORCH_CHECK(options.first_norm() || placement == NormPlacement::pre,
              "only norms before the sub-layers may lack the first one");
  if (options.layer_scale()) {
    for (const auto& name : options.sub_layers()) {
      scales.push_back(register_parameter(
          name + "_scale",
          torch::full({options.norm().size()}, *options.layer_scale(), parameter_options())));
    }
  }
  if (placement == NormPlacement::parallel) {
    norms_in.push_back(register_module("norm", Norm(options.norm())));
    return;
  }
  for (const auto& name : options.sub_layers()) {
    if (!options.first_norm() && norms_in.empty()) {
      norms_in.emplace_back(nullptr);
    } else if (placement != NormPlacement::residual_post) {
      norms_in.push_back(register_module(name + "_norm", Norm(options.norm())));
    }
    if (placement == NormPlacement::residual_post || placement == NormPlacement::sandwich) {
      norms_out.push_back(register_module(name + "_output_norm", Norm(options.norm())));
    }
  }
}

torch::Tensor ResidualSum::value() {
  if (pending_.y.defined()) {
    const auto y = std::exchange(pending_.y, {});
    pending_.x = add_dropout(pending_.x, y, pending_.p);
  }
  return pending_.x;
}

torch::Tensor ResidualSum::normed_by(Norm& norm, NormReader reader) {
  if (!norm) return value();
  if (!pending_.y.defined())
    return reader == NormReader::products ? norm->for_products(pending_.x) : norm(pending_.x);
  auto [sum, normed] = norm->of_sum(std::exchange(pending_, {}), reader);
  pending_.x = std::move(sum);
  return normed;
}

torch::ScalarType ResidualSum::type() const {
  const auto type = pending_.x.scalar_type();
  return pending_.y.defined() ? torch::promote_types(type, pending_.y.scalar_type()) : type;
}

ResidualSum ResidualImpl::sum(ResidualSum& x, const Place& place, torch::Tensor y) {
  if (options.scale() != 1) y = y * options.scale();
  if (!scales.empty()) y = y * scales[place.index].to(y.scalar_type());
  if (is_training() && options.stochastic_depth() > 0)
    y = y * dropout(torch::ones({y.size(0), 1, 1}, y.options()), options.stochastic_depth());
  if (place.observed) y = (*place.observed)(y);
  return ResidualSum(PendingSum{.x = x.value(), .y = std::move(y), .p = dropout_now()});
}

double ResidualImpl::dropout_now() const { return is_training() ? options.dropout() : 0.0; }

ResidualSum ResidualImpl::connected(ResidualSum& x, const Place& place, const SubLayer& sub_layer) {
  const auto index = place.index;
  switch (options.placement()) {
    case NormPlacement::pre:
      return sum(x, place, sub_layer(x.normed_by(norms_in[index], NormReader::products)));
    case NormPlacement::post:
      return ResidualSum(norms_in[index](sum(x, place, sub_layer(x.value())).value()));
    case NormPlacement::residual_post:
      return sum(x, place, norms_out[index](sub_layer(x.value())));
    case NormPlacement::sandwich:
      return sum(x, place, norms_out[index](sub_layer(x.normed_by(norms_in[index], NormReader::products))));
    case NormPlacement::parallel:
    case NormPlacement::parallel_norms:
      break;
  }
  C10_THROW_ERROR(ValueError,
                  "parallel sub-layers read the same vectors: connected() cannot take them one by one");
}

torch::Tensor ResidualImpl::forward(const torch::Tensor& x, const std::vector<SubLayer>& sub_layers,
                                    std::span<const ObservedPlace> observed) {
  return advance(ResidualSum(x), sub_layers, observed).value();
}

ResidualSum ResidualImpl::advance(ResidualSum x, const std::vector<SubLayer>& sub_layers,
                                  std::span<const ObservedPlace> observed) {
  TORCH_CHECK(sub_layers.size() == options.sub_layers().size(), "expected ", options.sub_layers().size(),
              " sub-layers, not ", sub_layers.size());
  TORCH_CHECK(observed.empty() || observed.size() == sub_layers.size(), "expected ", sub_layers.size(),
              " observed places, not ", observed.size());
  const auto place = [&](size_t i) {
    return Place{.index = i, .observed = observed.empty() ? nullptr : &observed[i]};
  };
  const auto placement = options.placement();
  if (placement != NormPlacement::parallel && placement != NormPlacement::parallel_norms) {
    for (size_t i = 0; i < sub_layers.size(); ++i) x = connected(x, place(i), sub_layers[i]);
    return x;
  }
  const auto first = x.normed_by(norms_in.front(), NormReader::products), before = x.value();
  for (size_t i = 0; i < sub_layers.size(); ++i) {
    if (dropout_now() > 0) x.value();  // the sum draws its random numbers before the next sub-layer does
    const bool reads_first = i == 0 || placement == NormPlacement::parallel;
    x = sum(x, place(i), sub_layers[i](reads_first ? first : norms_in[i]->for_products(before)));
  }
  return x;
}

void ResidualImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Residual")
                .add("placement", options.placement())
                .add("scale", options.scale() != 1 ? std::optional(options.scale()) : std::nullopt)
                .add("dropout", options.dropout());
}

void count_residual(CostAccount& account, const std::string& name, const ResidualOptions& options,
                    double n_tokens) {
  const auto n_sub_layers = static_cast<int64_t>(options.sub_layers().size()), size = options.norm().size();
  const int64_t n_norms = options.placement() == NormPlacement::parallel   ? 1
                          : options.placement() == NormPlacement::sandwich ? 2 * n_sub_layers
                          : options.first_norm()                           ? n_sub_layers
                                                                           : n_sub_layers - 1;
  count_norms(account, name, options.norm(), n_norms, n_tokens);
  if (!options.layer_scale()) return;
  for (const auto& sub_layer : options.sub_layers())
    account.add({.name = account.path(name, sub_layer + "_scale"),
                 .kind = "layer scale",
                 .shape = account.text("{}", size),
                 .activation_bytes = bytes_of(n_tokens, size)});
}

}  // namespace zoo
