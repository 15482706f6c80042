#include "data/splits.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

const std::vector<ConfigPath>& files_to_read(const DataConfig& config, Split split) {
  const auto& files = split == Split::test                             ? config.test
                      : split == Split::valid && !config.valid.empty() ? config.valid
                                                                       : config.train;
  if (files.empty()) throw DataError(fmt::format("data.{} names no files", name_of(split)));
  return files;
}

bool is_shared(const DataConfig& config, Split split) { return config.valid.empty() && split != Split::test; }

std::string corpus_name(const DataConfig& config, Split split) {
  std::string names;
  for (const auto& file : files_to_read(config, split)) {
    if (!names.empty()) names += ", ";
    names += data_file_or_directory(file).string();
  }
  return excerpt(names, 400);
}

}  // namespace zoo
