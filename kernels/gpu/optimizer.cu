// Steps of optimisers in CUDA C++: AdamW, Adam, Lion and SGD (optimizers/library_rules.h), for many parameters at once. Each
// number is read and written once, and its copy in 16 bits, which products read under mixed precision, is written in the
// same pass. The text needs no headers, and compiles as C++, too (tests/support/cuda_shim.h).

using zoo::kOptimizerNumbers;
using zoo::OptimizerCall;
using zoo::OptimizerTensor;
using zoo::RoundedType;

constexpr int kOptimizerThreads = ZOO_BLOCK_THREADS;

/// The tensor of a block: the last one that begins at this block or before.
__device__ inline int tensor_of_block(const OptimizerCall& call, long long block) {
  int found = 0, end = call.n_tensors;
  while (end - found > 1) {
    const int middle = (found + end) / 2;
    if (call.tensors[middle].first_block <= block) {
      found = middle;
    } else {
      end = middle;
    }
  }
  return found;
}

/// Changes the numbers of a block: step(tensor, i) returns the new number i of a tensor.
template <class Step>
__device__ inline void change_numbers(const OptimizerCall& call, const Step& step) {
  const long long block = blockIdx.x;
  const OptimizerTensor& tensor = call.tensors[tensor_of_block(call, block)];
  const long long begin = (block - tensor.first_block) * kOptimizerNumbers;
  const long long end = begin + kOptimizerNumbers < tensor.n ? begin + kOptimizerNumbers : tensor.n;
  for (long long i = begin + threadIdx.x; i < end; i += kOptimizerThreads) {
    const float x = step(tensor, i);
    tensor.parameters[i] = x;
    if (!tensor.rounded) continue;
    if (call.rounded == RoundedType::bf16) {
      Bf16 rounded;
      set(rounded, x);
      tensor.rounded[i] = rounded.bits;
    } else {
      tensor.rounded[i] = float_to_half_bits(x);
    }
  }
}

/// Kingma & Ba 2015, with the weight decay beside the step (AdamW) or in the gradient.
template <bool kDecoupled>
__device__ inline void adam_steps(const OptimizerCall& call) {
  const float n_steps = *call.tensors[tensor_of_block(call, blockIdx.x)].n_steps + 1.0f;
  // 1 - βⁿ, without the loss of digits that a small difference has.
  const float rate = call.lr / -expm1f(n_steps * call.log_beta1);
  const float scale = sqrtf(-expm1f(n_steps * call.log_beta2));
  change_numbers(call, [&](const OptimizerTensor& tensor, long long i) {
    float x = tensor.parameters[i], gradient = tensor.gradients[i];
    if (kDecoupled) {
      x -= call.lr * call.weight_decay * x;
    } else {
      gradient += call.weight_decay * x;
    }
    const float mean = call.beta1 * tensor.first[i] + (1.0f - call.beta1) * gradient;
    const float square = call.beta2 * tensor.second[i] + (1.0f - call.beta2) * gradient * gradient;
    tensor.first[i] = mean;
    tensor.second[i] = square;
    return x - rate * mean / (sqrtf(square) / scale + call.eps);
  });
}

extern "C" __global__ void __launch_bounds__(kOptimizerThreads) optimizer_adamw(const OptimizerCall call) {
  adam_steps<true>(call);
}

extern "C" __global__ void __launch_bounds__(kOptimizerThreads) optimizer_adam(const OptimizerCall call) {
  adam_steps<false>(call);
}

/// Chen et al. 2023.
extern "C" __global__ void __launch_bounds__(kOptimizerThreads) optimizer_lion(const OptimizerCall call) {
  change_numbers(call, [&](const OptimizerTensor& tensor, long long i) {
    const float gradient = tensor.gradients[i], mean = tensor.first[i];
    const float update = mean + (1.0f - call.beta1) * (gradient - mean);
    tensor.first[i] = mean + (1.0f - call.beta2) * (gradient - mean);
    const float sign = update > 0.0f ? 1.0f : update < 0.0f ? -1.0f : 0.0f;
    return tensor.parameters[i] * (1.0f - call.lr * call.weight_decay) - call.lr * sign;
  });
}

extern "C" __global__ void __launch_bounds__(kOptimizerThreads) optimizer_sgd(const OptimizerCall call) {
  change_numbers(call, [&](const OptimizerTensor& tensor, long long i) {
    const float x = tensor.parameters[i];
    float step = tensor.gradients[i] + call.weight_decay * x;
    if (tensor.first) {
      step += call.beta1 * tensor.first[i];
      tensor.first[i] = step;
    }
    return x - call.lr * step;
  });
}
