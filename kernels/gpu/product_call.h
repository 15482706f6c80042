#pragma once
// The arguments of the kernel for products of few rows (product.cu). The host and the text both read this
// file, so it includes nothing.

namespace zoo {

enum class ProductNorm : int { none, mean, zero };
enum class ProductAct : int { none, relu, gelu_exact, gelu_by_tanh, silu, quick_gelu };

struct ProductMatrix {
  const void* numbers = nullptr;  // (n_outputs, width)
  const float* scales = nullptr;  // of whole numbers: one for each row, or for each 32 numbers of it
  const void* bias = nullptr;     // (n_outputs); null: none
  int n_outputs = 0;
};

struct ProductCall {
  const void* inputs = nullptr;      // (n_rows, width) float or T
  const float* gain = nullptr;       // (width), with a norm
  const float* norm_bias = nullptr;  // (width); null: none
  const void* residual = nullptr;    // as outputs; null: none
  void* outputs = nullptr;           // (n_rows, n_outputs) float or T
  ProductMatrix matrices[3] = {};    // side by side; gated: the gate's rows, then those of up
  float eps = 0.0f, gain_offset = 0.0f;
  int n_rows = 0, width = 0, n_outputs = 0;
  int inputs_are_float = 0, outputs_are_float = 0, biases_are_float = 0;
  int scales_are_of_groups = 0, gated = 0;
  ProductNorm norm = ProductNorm::none;
  ProductAct act = ProductAct::none;
};

}  // namespace zoo
