// Prints the numbers behind the pictures of docs/tour.md as one JSON document. scripts/make_tour.py draws
// them.

#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/position_bias.h"
#include "layers/attention/positions.h"
#include "layers/attention/rotary.h"
#include "layers/feed_forward.h"
#include "models/initialize.h"
#include "models/stack.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// Rounded to four significant digits, which a picture cannot show better.
Json numbers(const torch::Tensor& tensor) {
  if (tensor.dim() > 1) {
    Json rows = Json::array();
    for (int64_t i = 0; i < tensor.size(0); ++i) rows.push_back(numbers(tensor[i]));
    return rows;
  }
  Json row = Json::array();
  const auto values = tensor.to(torch::kDouble).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = values.const_data_ptr<double>()[i];
    row.push_back(value == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", value)));
  }
  return row;
}

Json rotary_wavelengths() {
  Json result;
  const auto options = RotaryOptions(64).original_max_positions(2048);
  for (const auto scaling : {RotaryScaling::none, RotaryScaling::linear, RotaryScaling::ntk,
                             RotaryScaling::yarn, RotaryScaling::llama3}) {
    auto scaled = RotaryOptions(options).scaling(scaling);
    if (scaling != RotaryScaling::none) scaled.factor(8);
    result[std::string(name_of(scaling))] = numbers(2 * std::numbers::pi / rotary_rates(scaled));
  }
  return result;
}

/// (H, S): the bias on the score of each distance.
Json alibi() {
  const int64_t n_heads = 8, n_keys = 33;
  const auto bias = alibi_bias(alibi_slopes(n_heads), PositionRange(n_keys - 1, 1));
  return numbers(bias.view({n_heads, n_keys}).flip(-1));
}

Json t5() {
  const auto relative = torch::arange(-160, 161);
  return {{"relative", numbers(relative)},
          {"bidirectional", numbers(t5_buckets(relative, Direction::bidirectional, 32, 128))},
          {"causal", numbers(t5_buckets(relative, Direction::causal, 32, 128))}};
}

Json activations() {
  const auto x = torch::linspace(-4, 4, 161);
  Json result = {{"x", numbers(x)}};
  for (const auto activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu})
    result[std::string(name_of(activation))] = numbers(activate(activation, x));
  return result;
}

/// The root mean square of the residual stream after each layer of a deep decoder with initial weights.
Json residual_streams() {
  Json result;
  for (const auto placement : {NormPlacement::pre, NormPlacement::post, NormPlacement::residual_post,
                               NormPlacement::sandwich, NormPlacement::parallel}) {
    ModelConfig config;
    config.d_model = 128;
    config.n_layers = 24;
    config.n_heads = 4;
    config.position = Position::none;
    config.norm_placement = placement;
    config.init = Initialization::xavier_uniform;
    torch::manual_seed(1);
    Stack stack(config, StackRole::decoder);
    initialize(*stack, config);
    stack->eval();
    auto x = torch::randn({4, 32, config.d_model});
    std::vector<double> sizes = {x.square().mean().sqrt().item<double>()};
    for (auto& layer : stack->layers) {
      x = layer(x, {.self = {.mask = Mask::causal()}});
      sizes.push_back(x.square().mean().sqrt().item<double>());
    }
    result[std::string(name_of(placement))] = numbers(torch::tensor(sizes));
  }
  return result;
}

Json all() {
  const torch::NoGradGuard no_grad;
  return {{"sinusoidal", numbers(sinusoidal_positions(torch::arange(64), 64))},
          {"rotary", rotary_wavelengths()},
          {"alibi", alibi()},
          {"t5", t5()},
          {"activations", activations()},
          {"residual", residual_streams()}};
}

}  // namespace
}  // namespace zoo

int main() { std::cout << zoo::all() << '\n'; }
