// A project that uses the installed library: one attention layer by hand, with its weights.
#include <iostream>

#include <torch/types.h>

#include "layers/attention.h"
#include "training/tasks/experiment.h"

int main() {
  zoo::Attention attention(zoo::AttentionOptions(/*d_model=*/8, /*n_heads=*/2));
  std::vector<torch::Tensor> maps;
  const auto y = attention(torch::randn({1, 3, 8}), {.mask = zoo::Mask::causal(), .maps = &maps});
  const auto experiment = zoo::parse_experiment("name: consumer", "memory");
  std::cout << experiment.name << ' ' << y.sizes() << ' ' << maps.front().sizes() << '\n';
}
