// tokenizer_speed DIRECTORY TEXTS: reads the texts, which end with a zero byte each. For each line of
// standard input, a number of threads, it encodes all texts and prints the seconds and the number of ids.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "io/files.h"
#include "tokenizers/tokenize.h"
#include "tokenizers/tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto tokenizer = zoo::open_tokenizer(argv[1]);
  const auto all = zoo::read_file(argv[2], zoo::Follow::links);
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\0', begin);
    texts.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  for (int n_threads = 0; std::cin >> n_threads;) {
    at::set_num_threads(n_threads);
    const auto start = std::chrono::steady_clock::now();
    int64_t n_ids = 0;
    zoo::encode_in_order(zoo::reader_of({&texts}), *tokenizer,
                         [&](const zoo::TokenIds& ids) { n_ids += std::ssize(ids); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::cout << fmt::format("{:.6f} {}", time.count(), n_ids) << std::endl;
  }
}
