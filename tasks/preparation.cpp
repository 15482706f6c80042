#include "tasks/preparation.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/progress.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// 0 if there is no such file.
int64_t bytes_of_file(const ConfigPath& path) {
  try {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(data_file_or_directory(path), error);
    return error ? 0 : static_cast<int64_t>(bytes);
  } catch (const DataError&) {
    return 0;
  }
}

/// "a.txt and 2 more (5.2 MB)"
std::string name_and_size(const DataConfig& config, Split split) {
  const auto& files = files_to_read(config, split);
  const auto more = files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "";
  return fmt::format("{}{} ({})", excerpt(files.front().text, 200), more,
                     bytes_text(bytes_of(config, split)));
}

}  // namespace

int64_t bytes_of(const DataConfig& config, Split split) try {
  int64_t bytes = 0;
  for (const auto& file : files_to_read(config, split)) {
    // Of these names only the first one is there, or the other two.
    for (const auto& name : {file, file + ("." + config.source), file + ("." + config.target)})
      bytes += bytes_of_file(name);
  }
  return bytes;
} catch (const DataError&) {  // the split has no files
  return 0;
}

std::optional<std::string> learning_note(const Experiment& experiment, const LongPreparation& from) {
  if (experiment.init_from || !task_type(experiment).needs_tokenizer()) return std::nullopt;
  return learning_note(experiment.data.tokenizer, experiment.data, from);
}

std::optional<std::string> learning_note(const TokenizerConfig& config, const DataConfig& corpus,
                                         const LongPreparation& from) {
  if (!learns_vocabulary(config.type) || !config.path.text.empty()) return std::nullopt;
  if (bytes_of(corpus, Split::train) < from.learnt) return std::nullopt;
  return fmt::format("learning a vocabulary of {} tokens from {}", config.vocab_size,
                     name_and_size(corpus, Split::train));
}

std::optional<std::string> reading_note(const DataConfig& config, Split split, const LongPreparation& from) {
  if (bytes_of(config, split) < from.read) return std::nullopt;
  return fmt::format("reading {}", name_and_size(config, split));
}

}  // namespace zoo
