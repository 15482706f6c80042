// The speed of products with weights in each format (kernels/products), beside the library's product
// in fp32 (zoo::linear) and the rate at which this machine reads memory.
//
//   products_speed [ROWS …]      rows of x; default: 1 4 16 512
//
// Each number is from the lowest tenth of the times of several rounds, in which the formats take turns.
// Copies of the weights fill 150 MB together, so that none comes from a cache. Prints one Markdown table for
// each number of rows: GB/s of weights, and in brackets the speed in relation to fp32.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/adaptive_waits.h"
#include "base/cpu_allocator.h"
#include "base/memory_rate.h"
#include "base/named_enum.h"
#include "base/stopwatch.h"
#include "kernels/linear.h"
#include "kernels/products/products.h"

namespace zoo {
namespace {

constexpr int64_t kBytes = 150'000'000;
constexpr double kGiga = 1e9;
constexpr size_t kFewest = 10;
constexpr double kSeconds = 2;  // for one shape

struct Shape {
  int64_t n_outputs, n_inputs;
};
constexpr std::array<Shape, 6> kShapes{
    {{768, 768}, {3072, 768}, {768, 3072}, {50304, 768}, {1536, 384}, {1376, 512}}};
constexpr std::array<std::pair<const char*, PackedFormat>, 4> kPacked{{{"bf16", PackedFormat::bf16},
                                                                       {"fp16", PackedFormat::fp16},
                                                                       {"int8", PackedFormat::int8},
                                                                       {"int4", PackedFormat::int4}}};

template <class Work>
double seconds_of(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

/// Products with the copies of a matrix, one after the other.
struct Candidate {
  std::string name;
  int64_t bytes;  // of one copy
  std::function<void(size_t)> run;
  size_t n_copies;
  std::vector<double> seconds = {};

  void measure() {
    seconds.push_back(seconds_of([&] { run(seconds.size() % n_copies); }));
  }
  double low() {
    const auto tenth = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 10);
    std::nth_element(seconds.begin(), tenth, seconds.end());
    return *tenth;
  }
};

std::vector<Candidate> candidates(const Shape& shape, const torch::Tensor& x) {
  std::vector<Candidate> result;
  const auto weight = torch::randn({shape.n_outputs, shape.n_inputs});
  const auto copies_of = [](int64_t bytes) { return std::max<int64_t>(kBytes / bytes, 2); };
  const auto bytes = static_cast<int64_t>(weight.nbytes());
  const auto weights = std::make_shared<std::vector<torch::Tensor>>();
  for (int64_t i = 0; i < copies_of(bytes); ++i) weights->push_back(weight.clone());
  const auto add = [&](const char* name, int64_t size, std::function<void(size_t)> run) {
    result.push_back({name, size, std::move(run), static_cast<size_t>(copies_of(size))});
  };
  add("library fp32", bytes, [weights, x](size_t i) { zoo::linear(x, (*weights)[i]); });
  add("fp32", bytes, [weights, x](size_t i) {  // Other copies than the library has just read.
    rows_product(x, (*weights)[(i + weights->size() / 2) % weights->size()]);
  });
  for (const auto& [name, format] : kPacked) {
    const auto size = PackedMatrix(weight, format).memory().numel();
    const auto matrices = std::make_shared<std::vector<PackedMatrix>>();
    for (int64_t i = 0; i < copies_of(size); ++i) matrices->emplace_back(weight, format);
    add(name, size, [matrices, x](size_t i) { packed_product(x, (*matrices)[i]); });
  }
  return result;
}

void measure(int64_t rows) {
  std::string header = fmt::format("\n| {} row{} |", rows, rows == 1 ? "" : "s"), line = "|---|";
  for (const auto& shape : kShapes) {
    const auto x = torch::randn({rows, shape.n_inputs});
    auto all = candidates(shape, x);
    const Stopwatch watch;
    while (all.back().seconds.size() < kFewest || watch.seconds() < kSeconds)
      for (auto& candidate : all) candidate.measure();
    if (!header.empty()) {
      for (auto& candidate : all) {
        header += fmt::format(" {} |", candidate.name);
        line += "---|";
      }
      fmt::print("{}\n{}\n", header, line);
      header.clear();
    }
    fmt::print("| {} × {} |", shape.n_outputs, shape.n_inputs);
    for (auto& candidate : all) {
      fmt::print(" {:.1f} ({:.2f}) |", static_cast<double>(candidate.bytes) / candidate.low() / kGiga,
                 all.front().low() / candidate.low());
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace zoo

int main(int n_arguments, char** arguments) {
  const torch::NoGradGuard no_grad;
  zoo::use_caching_cpu_allocator();  // this and the next as in the program
  const zoo::AdaptiveWaits adaptive_waits;
  std::vector<int64_t> rows;
  for (int i = 1; i < n_arguments; ++i) rows.push_back(std::atol(arguments[i]));
  if (rows.empty()) rows = {1, 4, 16, 512};
  fmt::print("{} threads, {}; memory: {:.1f} GB/s\n", at::get_num_threads(), zoo::name_of(zoo::best_path()),
             zoo::memory_read_rate() / zoo::kGiga);
  for (const auto n : rows) zoo::measure(n);
  fmt::print("\nmemory: {:.1f} GB/s\n", zoo::memory_read_rate() / zoo::kGiga);
}
