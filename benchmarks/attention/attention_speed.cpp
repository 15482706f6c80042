// Times forward and backward passes of attention, for run.py in this folder. Reads its work from the
// arguments
//
//     attention_speed KIND LENGTH WINDOW HEADS HEAD_DIM SECONDS
//
// and prints one JSON object: {"seconds": median, "bytes": peak of the tensors}. KIND:
//   full          fused attention over all keys
//   window        attention over a window of WINDOW keys on each side
//   libtorch      LibTorch's fused attention over all keys
//   window-layer  the self-attention module with its projections and that window

#include <iostream>
#include <memory>
#include <string>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/tensor_memory.h"
#include "costs/measure.h"
#include "layers/attention/attention.h"
#include "layers/attention/banded_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_pattern.h"

namespace zoo {
namespace {

struct Work {
  std::string kind;
  int64_t length, window, n_heads, head_dim;
};

std::shared_ptr<const WindowPattern> pattern_of(const Work& work) {
  return std::make_shared<WindowPattern>(Direction::bidirectional, WindowOptions().size(work.window));
}

/// A forward and backward pass of the attention alone.
std::function<void()> attention_pass(const Work& work) {
  const auto heads = [&] {
    return torch::randn({1, work.length, work.n_heads, work.head_dim}).transpose(1, 2).requires_grad_();
  };
  const auto attend = [work, pattern = pattern_of(work)](const auto& q, const auto& k, const auto& v) {
    if (work.kind == "libtorch") return at::scaled_dot_product_attention(q, k, v);
    if (work.kind == "full") return fused_attention(q, k, v);
    return banded_attention(q, k, v, pattern->visible({.length = work.length}), 0.125);
  };
  return [attend, q = heads(), k = heads(), v = heads(), upstream = heads().detach()] {
    attend(q, k, v).backward(upstream);
    for (const auto& x : {q, k, v}) x.mutable_grad().reset();
  };
}

std::function<void()> layer_pass(const Work& work) {
  const int64_t d_model = work.n_heads * work.head_dim;
  Attention layer(AttentionOptions(d_model, work.n_heads).pattern(pattern_of(work)));
  const auto x = torch::randn({1, work.length, d_model}).requires_grad_();
  return [layer, x, upstream = torch::randn_like(x)]() mutable {
    layer(x).backward(upstream);
    x.mutable_grad().reset();
    layer->zero_grad();
  };
}

int run(int argc, char** argv) {
  constexpr int n_arguments = 7;
  if (argc != n_arguments) {
    std::cerr << "usage: attention_speed KIND LENGTH WINDOW HEADS HEAD_DIM SECONDS\n";
    return 2;
  }
  const Work work{argv[1], std::stol(argv[2]), std::stol(argv[3]), std::stol(argv[4]), std::stol(argv[5])};
  torch::manual_seed(0);
  const auto pass = work.kind == "window-layer" ? layer_pass(work) : attention_pass(work);
  const TensorMemory memory(torch::kCPU);
  const auto times = measure_times(pass, torch::kCPU, std::stod(argv[6]));
  std::cout << fmt::format("{{\"seconds\": {}, \"bytes\": {}}}\n", times.median, memory.peak());
  return 0;
}

}  // namespace
}  // namespace zoo

int main(int argc, char** argv) { return zoo::run(argc, argv); }
