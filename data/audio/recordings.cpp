#include "data/audio/recordings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/audio/resample.h"
#include "data/audio/sound_file.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualSpeed = 100;

/// Throws DataError for a recording that is too long.
void check_length(const fs::path& file, const SoundInfo& info, const AudioConfig& config) {
  if (info.seconds() <= config.max_seconds) return;
  throw DataError(fmt::format("{}: is {:.1f} s long, longer than {:g} s (data.audio.max_seconds)",
                              excerpt(file.string(), 300), info.seconds(), config.max_seconds));
}

/// Adds the rows of a list.
void add_list(const fs::path& list, const DataConfig& config, std::vector<Recording>& recordings) {
  const auto table = open_table(list);
  const auto columns = table->columns();
  const bool has_speakers = std::ranges::find(columns, "speaker") != columns.end();
  std::vector<ColumnNames> wanted{{"audio"}, config.text_column};
  if (has_speakers) wanted.push_back({"speaker"});
  table->read(wanted, [&](TableRow row) {
    auto& [line, fields] = row;
    const fs::path file(fields[0]);
    if (fields[0].empty() || !stays_below(file)) {
      throw DataError(fmt::format("{}:{}: '{}' is no path of a file in the directory of this list",
                                  list.string(), line, excerpt(fields[0])));
    }
    if (is_blank(fields[1])) throw DataError(fmt::format("{}:{}: no text", list.string(), line));
    recordings.push_back({.file = list.parent_path() / file,
                          .text = std::move(fields[1]),
                          .speaker = has_speakers ? std::move(fields[2]) : std::string()});
  });
}

}  // namespace

RowsBySplit<std::vector<Recording>> listed_recordings(const DataConfig& config) {
  const auto read = [config](Split split) {
    std::vector<Recording> recordings;
    for (const auto& name : files_to_read(config, split)) {
      const auto path = data_file_or_directory(name);
      if (!is_table(path)) {
        throw DataError(
            fmt::format("{}: recordings are read from a list (NAME.tsv) with the columns audio and {}",
                        path.string(), fmt::join(config.text_column, " or ")));
      }
      add_list(path, config, recordings);
    }
    return recordings;
  };
  const auto part = [config](const std::vector<Recording>& all, Split split) {
    std::vector<Recording> kept;
    for (const int64_t i : random_share(config, split, std::ssize(all)))
      kept.push_back(all[static_cast<size_t>(i)]);
    return kept;
  };
  const auto check = [config](const std::vector<Recording>& recordings, Split split) {
    if (recordings.empty())
      throw DataError(fmt::format("{}: no recordings for {}", corpus_name(config, split), name_of(split)));
  };
  return {config, {.read = read, .part = part, .check = check}};
}

void read_headers(std::vector<Recording>& recordings, const AudioConfig& config) {
  constexpr int64_t most_named = 10;
  std::vector<std::string> problems;
  for (auto& recording : recordings) {
    try {
      const auto info = SoundFile(recording.file).info();
      check_length(recording.file, info, config);
      recording.sample_rate = info.sample_rate;
      recording.n_samples = info.n_samples;
    } catch (const DataError& error) {
      problems.emplace_back(error.what());
    }
  }
  if (problems.empty()) return;
  if (problems.size() == 1) throw DataError(problems.front());
  const auto n_named = std::min(most_named, std::ssize(problems));
  throw DataError(fmt::format("{} of {} recordings cannot be read: {}{}", problems.size(), recordings.size(),
                              fmt::join(problems.begin(), problems.begin() + n_named, "; "),
                              n_named < std::ssize(problems) ? "; …" : ""));
}

std::vector<Recording> read_recordings(const DataConfig& config, Split split) {
  auto recordings = listed_recordings(config).take(split);
  read_headers(recordings, config.audio);
  return recordings;
}

std::vector<float> read_samples(const fs::path& file, const AudioConfig& config, int64_t speed) {
  SoundFile sound(file);
  check_length(file, sound.info(), config);
  return resample(sound.read(), sound.info().sample_rate * speed, config.sample_rate * kUsualSpeed);
}

int64_t n_samples_read(const Recording& recording, const AudioConfig& config, int64_t speed) {
  return resampled_length(recording.n_samples, recording.sample_rate * speed,
                          config.sample_rate * kUsualSpeed);
}

}  // namespace zoo
