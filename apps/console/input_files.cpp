#include "apps/console/input_files.h"

#include <iostream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "apps/console/standard_input.h"
#include "base/error.h"
#include "data/audio/sound_file.h"
#include "data/directory.h"
#include "data/images/image_file.h"
#include "data/text_files.h"
#include "io/files.h"
#include "text/text_rows.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// What is said about a kind of files.
struct Words {
  const char *option, *help, *one, *many, *formats;
  bool (*is_name)(const fs::path& name);
};

const Words& words_for(FileKind kind) {
  static constexpr Words images{
      .option = "--image",
      .help = "Images to read (PNG, JPEG, WebP), or directories of such; may be repeated",
      .one = "image",
      .many = "images",
      .formats = "PNG, JPEG or WebP images",
      .is_name = is_image_name};
  static constexpr Words recordings{
      .option = "--audio",
      .help = "Recordings to read (WAV, FLAC), or directories of such; may be repeated",
      .one = "recording",
      .many = "recordings",
      .formats = "WAV or FLAC files",
      .is_name = is_recording_name};
  return kind == FileKind::images ? images : recordings;
}

/// The files of a kind in a directory. Throws DataError if there are none.
std::vector<std::string> files_in(const fs::path& directory, const Words& words) {
  const auto listing = list_files(directory, words.is_name);
  const auto skipped = listing.skipped_text();
  if (listing.files.empty()) {
    throw DataError(fmt::format("{}: no {}{}", directory.string(), words.formats,
                                skipped ? fmt::format(" ({})", *skipped) : ""));
  }
  if (skipped) std::cerr << fmt::format("note: {}: {}\n", directory.string(), *skipped);
  std::vector<std::string> files;
  for (const auto& file : listing.files) files.push_back(file.string());
  return files;
}

/// Adds the paths that a text lists, one a line; `name` is what errors call the text.
void add_listed(std::string content, std::string_view name, std::vector<std::string>& files) {
  const auto n_before = files.size();
  for (const auto& line : lines_of_text(std::move(content), name))
    if (!is_blank(line)) files.emplace_back(without_blanks_at_end(line));
  if (files.size() == n_before) throw DataError(fmt::format("{}: it lists no files", name));
}

}  // namespace

void add_files(CLI::App& command, FileKind kind, std::vector<fs::path>& files) {
  const auto& words = words_for(kind);
  command.add_option(words.option, files, words.help)->option_text("PATH ...");
}

std::vector<std::string> input_files(FileKind kind, const std::vector<fs::path>& files,
                                     const std::vector<fs::path>& lists) {
  const auto& words = words_for(kind);
  std::vector<std::string> result;
  for (const auto& path : files) {
    if (!has_directory(path)) {
      result.push_back(path.string());
      continue;
    }
    auto found = files_in(path, words);
    result.insert(result.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  for (const auto& list : lists)
    add_listed(read_file(list, Follow::everything, kMostInputBytes), list.string(), result);
  if (!files.empty() || !lists.empty()) return result;
  const auto advice =
      fmt::format("write the path of one {} per line, or give {} FILE", words.one, words.option);
  add_listed(standard_input(advice), "standard input", result);
  return result;
}

std::function<void(const std::string&)> UnreadableFiles::listener() {
  if (what_ == Unreadable::fail || n_inputs_ == 1) return nullptr;
  return [this](const std::string& problem) { problems_.push_back(problem); };
}

void UnreadableFiles::finish() const {
  if (!any()) return;
  const char* const many = words_for(kind_).many;
  for (const auto& problem : problems_) std::cerr << "skipped: " << problem << '\n';
  if (std::ssize(problems_) == n_inputs_)
    throw DataError(fmt::format("none of the {} {} can be read", n_inputs_, many));
  std::cerr << fmt::format("note: {} of {} {} skipped\n", problems_.size(), n_inputs_, many);
}

}  // namespace zoo
