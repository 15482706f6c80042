// A project that uses the installed library, and that has headers with the names of the library's.
#include <filesystem>
#include <iostream>

#include <torch/types.h>

#include <zoo/data/batch_source.h>
#include <zoo/io/files.h>
#include <zoo/zoo.h>

#include "data/batch_source.h"
#include "io/files.h"

int main() {
  zoo::Attention attention(zoo::AttentionOptions(/*d_model=*/8, /*n_heads=*/2));
  std::vector<torch::Tensor> maps;
  const auto y = attention(torch::randn({1, 3, 8}), {.mask = zoo::Mask::causal(), .maps = &maps});
  const auto experiment = zoo::parse_experiment("name: consumer", "memory");
  std::cout << experiment.name << ' ' << y.sizes() << ' ' << maps.front().sizes() << '\n';
  zoo::write_file_atomically(name_of_report(), "made by the consumer\n");
  std::cout << BatchSource().n_batches << " batches, " << zoo::read_file(name_of_report());
  std::filesystem::remove(name_of_report());
}
