#include "tests/support/texts_here.h"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include <c10/util/Exception.h>

#include "kernels/gpu/decoding_attention_call.h"
#include "kernels/gpu/optimizer_call.h"
#include "kernels/gpu/product_call.h"
#include "tests/support/cuda_shim.h"

namespace zoo::testing {
namespace text {
#include "kernels/gpu/numbers.cu"
// Behind the numbers.
#include "kernels/gpu/activations.cu"
#include "kernels/gpu/dropout_numbers.cu"
// Behind what all texts share.
#include "kernels/gpu/cross_entropy.cu"
#include "kernels/gpu/decoding_attention.cu"
#include "kernels/gpu/dropout.cu"
#include "kernels/gpu/gate.cu"
#include "kernels/gpu/norm.cu"
#include "kernels/gpu/optimizer.cu"
#include "kernels/gpu/product.cu"
#include "kernels/gpu/rotary.cu"
}  // namespace text
namespace {

template <class T>
void show(T*& address, const TextsHere::Shown& shown) {
  address = static_cast<T*>(shown(const_cast<std::remove_const_t<T>*>(address)));
}

template <class T>
  requires std::is_arithmetic_v<T>
void show(T&, const TextsHere::Shown&) {}

void show(ProductCall& call, const TextsHere::Shown& shown) {
  for (auto& [numbers, scales, bias, n_outputs] : call.matrices) {
    show(numbers, shown);
    show(scales, shown);
    show(bias, shown);
  }
  show(call.inputs, shown);
  show(call.gain, shown);
  show(call.norm_bias, shown);
  show(call.residual, shown);
  show(call.outputs, shown);
}

void show(OptimizerCall& call, const TextsHere::Shown& shown) {
  for (auto& tensor : call.tensors) {
    show(tensor.parameters, shown);
    show(tensor.gradients, shown);
    show(tensor.first, shown);
    show(tensor.second, shown);
    show(tensor.n_steps, shown);
    show(tensor.rounded, shown);
  }
}

void show(DecodingAttentionCall& call, const TextsHere::Shown& shown) {
  show(call.heads, shown);
  show(call.keys, shown);
  show(call.values, shown);
  show(call.positions, shown);
  show(call.cosines, shown);
  show(call.sines, shown);
  show(call.query_gain, shown);
  show(call.key_gain, shown);
  show(call.sinks, shown);
  show(call.outputs, shown);
  show(call.parts, shown);
  show(call.n_done, shown);
}

/// Some texts have a block for each piece of work. The threads of the others take turns, which few blocks
/// show.
bool needs_every_block(const std::string& function) {
  return function.starts_with("cross_entropy") || function.starts_with("decoding_attention") ||
         function.starts_with("optimizer") ||
         (function.find("norm") != function.npos && function.ends_with("_forward"));
}

}  // namespace

template <class... Args>
void TextsHere::add(const std::string& name, void (*kernel)(Args...)) {
  functions_[name] = {
      sizeof...(Args),
      [kernel](const std::vector<void*>& arguments, const Shown& shown) -> std::function<void()> {
        return [&]<size_t... i>(std::index_sequence<i...>) {
          std::tuple<Args...> values(*static_cast<Args*>(arguments[i])...);
          (show(std::get<i>(values), shown), ...);
          return [kernel, values] { std::apply(kernel, values); };
        }(std::index_sequence_for<Args...>());
      }};
}

template <class... In, class... Out>
void TextsHere::add(const std::string& name, void (*forward)(In...), void (*backward)(Out...)) {
  add(name + "_forward", forward);
  add(name + "_backward", backward);
}

TextsHere::TextsHere() {
  add("cross_entropy_float", text::cross_entropy_float);
  add("cross_entropy_bf16", text::cross_entropy_bf16);
  add("cross_entropy_half", text::cross_entropy_half);
  add("layer_norm_float_bf16_bf16", text::layer_norm_float_bf16_bf16_forward,
      text::layer_norm_float_bf16_bf16_backward);
  add("layer_norm_float_half_half", text::layer_norm_float_half_half_forward,
      text::layer_norm_float_half_half_backward);
  add("layer_norm_float_float_bf16", text::layer_norm_float_float_bf16_forward,
      text::layer_norm_float_float_bf16_backward);
  add("layer_norm_float_float_half", text::layer_norm_float_float_half_forward,
      text::layer_norm_float_float_half_backward);
  add("layer_norm_float_bf16_float", text::layer_norm_float_bf16_float_forward,
      text::layer_norm_float_bf16_float_backward);
  add("layer_norm_float_half_float", text::layer_norm_float_half_float_forward,
      text::layer_norm_float_half_float_backward);
  add("layer_norm_float_float_float", text::layer_norm_float_float_float_forward,
      text::layer_norm_float_float_float_backward);
  add("layer_norm_bf16_bf16_bf16", text::layer_norm_bf16_bf16_bf16_forward,
      text::layer_norm_bf16_bf16_bf16_backward);
  add("layer_norm_half_half_half", text::layer_norm_half_half_half_forward,
      text::layer_norm_half_half_half_backward);
  add("rms_norm_float_bf16_bf16", text::rms_norm_float_bf16_bf16_forward,
      text::rms_norm_float_bf16_bf16_backward);
  add("rms_norm_float_half_half", text::rms_norm_float_half_half_forward,
      text::rms_norm_float_half_half_backward);
  add("rms_norm_float_float_bf16", text::rms_norm_float_float_bf16_forward,
      text::rms_norm_float_float_bf16_backward);
  add("rms_norm_float_float_half", text::rms_norm_float_float_half_forward,
      text::rms_norm_float_float_half_backward);
  add("rms_norm_float_bf16_float", text::rms_norm_float_bf16_float_forward,
      text::rms_norm_float_bf16_float_backward);
  add("rms_norm_float_half_float", text::rms_norm_float_half_float_forward,
      text::rms_norm_float_half_float_backward);
  add("rms_norm_float_float_float", text::rms_norm_float_float_float_forward,
      text::rms_norm_float_float_float_backward);
  add("rms_norm_bf16_bf16_bf16", text::rms_norm_bf16_bf16_bf16_forward,
      text::rms_norm_bf16_bf16_bf16_backward);
  add("rms_norm_half_half_half", text::rms_norm_half_half_half_forward,
      text::rms_norm_half_half_half_backward);
  add("silu_float", text::silu_float_forward, text::silu_float_backward);
  add("silu_bf16", text::silu_bf16_forward, text::silu_bf16_backward);
  add("silu_half", text::silu_half_forward, text::silu_half_backward);
  add("gelu_exact_float", text::gelu_exact_float_forward, text::gelu_exact_float_backward);
  add("gelu_exact_bf16", text::gelu_exact_bf16_forward, text::gelu_exact_bf16_backward);
  add("gelu_exact_half", text::gelu_exact_half_forward, text::gelu_exact_half_backward);
  add("gelu_by_tanh_float", text::gelu_by_tanh_float_forward, text::gelu_by_tanh_float_backward);
  add("gelu_by_tanh_bf16", text::gelu_by_tanh_bf16_forward, text::gelu_by_tanh_bf16_backward);
  add("gelu_by_tanh_half", text::gelu_by_tanh_half_forward, text::gelu_by_tanh_half_backward);
  add("add_dropout_float_float", text::add_dropout_float_float_forward,
      text::add_dropout_float_float_backward);
  add("add_dropout_float_bf16", text::add_dropout_float_bf16_forward, text::add_dropout_float_bf16_backward);
  add("add_dropout_float_half", text::add_dropout_float_half_forward, text::add_dropout_float_half_backward);
  add("add_dropout_bf16_bf16", text::add_dropout_bf16_bf16_forward, text::add_dropout_bf16_bf16_backward);
  add("add_dropout_half_half", text::add_dropout_half_half_forward, text::add_dropout_half_half_backward);
  add("relu_float", text::relu_float_forward, text::relu_float_backward);
  add("relu_bf16", text::relu_bf16_forward, text::relu_bf16_backward);
  add("relu_half", text::relu_half_forward, text::relu_half_backward);
  add("quick_gelu_float", text::quick_gelu_float_forward, text::quick_gelu_float_backward);
  add("quick_gelu_bf16", text::quick_gelu_bf16_forward, text::quick_gelu_bf16_backward);
  add("quick_gelu_half", text::quick_gelu_half_forward, text::quick_gelu_half_backward);
  add("rotary_half_float", text::rotary_half_float);
  add("rotary_half_bf16", text::rotary_half_bf16);
  add("rotary_half_half", text::rotary_half_half);
  add("rotary_interleaved_float", text::rotary_interleaved_float);
  add("rotary_interleaved_bf16", text::rotary_interleaved_bf16);
  add("rotary_interleaved_half", text::rotary_interleaved_half);
  add("optimizer_adamw", text::optimizer_adamw);
  add("optimizer_adam", text::optimizer_adam);
  add("optimizer_lion", text::optimizer_lion);
  add("optimizer_sgd", text::optimizer_sgd);
  add("product_float_float_1", text::product_float_float_1);
  add("product_float_float_4", text::product_float_float_4);
  add("product_float_float_8", text::product_float_float_8);
  add("product_bf16_bf16_1", text::product_bf16_bf16_1);
  add("product_bf16_bf16_4", text::product_bf16_bf16_4);
  add("product_bf16_bf16_8", text::product_bf16_bf16_8);
  add("product_half_half_1", text::product_half_half_1);
  add("product_half_half_4", text::product_half_half_4);
  add("product_half_half_8", text::product_half_half_8);
  add("product_float_whole_1", text::product_float_whole_1);
  add("product_float_whole_4", text::product_float_whole_4);
  add("product_float_whole_8", text::product_float_whole_8);
  add("product_bf16_whole_1", text::product_bf16_whole_1);
  add("product_bf16_whole_4", text::product_bf16_whole_4);
  add("product_bf16_whole_8", text::product_bf16_whole_8);
  add("product_half_whole_1", text::product_half_whole_1);
  add("product_half_whole_4", text::product_half_whole_4);
  add("product_half_whole_8", text::product_half_whole_8);
  add("decoding_attention_float_1", text::decoding_attention_float_1);
  add("decoding_attention_float_4", text::decoding_attention_float_4);
  add("decoding_attention_float_8", text::decoding_attention_float_8);
  add("decoding_attention_bf16_1", text::decoding_attention_bf16_1);
  add("decoding_attention_bf16_4", text::decoding_attention_bf16_4);
  add("decoding_attention_bf16_8", text::decoding_attention_bf16_8);
  add("decoding_attention_half_1", text::decoding_attention_half_1);
  add("decoding_attention_half_4", text::decoding_attention_half_4);
  add("decoding_attention_half_8", text::decoding_attention_half_8);
}

std::function<void()> TextsHere::call(const std::string& function, const LaunchSize& size,
                                      const std::vector<void*>& arguments, const Shown& shown) const {
  const auto found = functions_.find(function);
  TORCH_CHECK(found != functions_.end(), "no function ", function);
  TORCH_CHECK(found->second.n_arguments == arguments.size(), function, " has other arguments");
  const auto blocks = needs_every_block(function) ? size.blocks : std::min<int64_t>(size.blocks, 2);
  return [blocks, body = found->second.bind(arguments, shown)] {
    run_blocks(static_cast<unsigned>(blocks), ZOO_BLOCK_THREADS, body);
  };
}

void TextsHere::launch(const std::string& function, const LaunchSize& size,
                       std::vector<void*> arguments) const {
  call(function, size, arguments, [](void* address) { return address; })();
}

float as_bf16_of_texts(float x) {
  text::Bf16 number;
  text::set(number, x);
  return text::to_float(number);
}

float as_half_of_texts(float x) {
  text::Half number;
  text::set(number, x);
  return text::to_float(number);
}

}  // namespace zoo::testing
