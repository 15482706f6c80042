#include "data/splits.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/epoch_plan.h"

namespace zoo {

const std::vector<ConfigPath>& files_to_read(const DataConfig& config, Split split) {
  const auto& files = split == Split::test                             ? config.test
                      : split == Split::valid && !config.valid.empty() ? config.valid
                                                                       : config.train;
  if (files.empty())
    throw DataError(
        fmt::format("data.{0} names no files: give them with --set data.{0}=FILE, or write "
                    "data.{0} in the configuration",
                    name_of(split)));
  return files;
}

bool is_shared(const DataConfig& config, Split split) { return config.valid.empty() && split != Split::test; }

size_t train_part(const DataConfig& config, size_t n) {
  return static_cast<size_t>((1.0 - config.valid_fraction) * static_cast<double>(n));
}

void fail_empty(const DataConfig& config, Split split, std::string_view rows) {
  const auto& files = files_to_read(config, split);
  throw DataError(fmt::format("{}: no {} for {}{}", data_path(files.front()).string(), rows, name_of(split),
                              is_shared(config, split) ? "; the text is too short to be split" : ""));
}

std::vector<int64_t> random_order(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random({kOrderPurpose});
  random.shuffle(order);
  return order;
}

std::vector<int64_t> random_share(const DataConfig& config, Split split, int64_t n) {
  auto order = random_order(n);
  const auto first_of_train =
      order.begin() + static_cast<ptrdiff_t>(config.valid_fraction * static_cast<double>(n));
  split == Split::valid ? order.erase(first_of_train, order.end())
                        : order.erase(order.begin(), first_of_train);
  std::ranges::sort(order);
  return order;
}

std::string corpus_name(const DataConfig& config, Split split) {
  std::string names;
  for (const auto& file : files_to_read(config, split)) {
    if (!names.empty()) names += ", ";
    names += data_file_or_directory(file).string();
  }
  return excerpt(names, 400);
}

}  // namespace zoo
