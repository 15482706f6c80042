#pragma once
// The arguments of the kernel that takes the steps of optimisers (optimizer.cu). The host and the text both
// read this file, so it includes nothing.

namespace zoo {

enum class RoundedType : int { none, bf16, half };

struct OptimizerTensor {
  float* parameters = nullptr;  // (n)
  const float* gradients = nullptr;
  float* first = nullptr;             // the rule's state; null: it has none
  float* second = nullptr;            // the same
  const float* n_steps = nullptr;     // one number, without this step; null: the rule counts none
  unsigned short* rounded = nullptr;  // a copy in 16 bits; null: there is none
  long long n = 0;
  long long first_block = 0;  // of those that change it
};

/// A call's arguments have 4 KB.
constexpr int kOptimizerTensors = 60;
/// Numbers that a block changes.
constexpr int kOptimizerNumbers = 8192;

struct OptimizerCall {
  OptimizerTensor tensors[kOptimizerTensors] = {};
  int n_tensors = 0;
  float lr = 0.0f, weight_decay = 0.0f;
  float beta1 = 0.0f, beta2 = 0.0f;          // sgd: beta1 is the momentum
  float log_beta1 = 0.0f, log_beta2 = 0.0f;  // natural logarithms
  float eps = 0.0f;
  RoundedType rounded = RoundedType::none;
};

}  // namespace zoo
