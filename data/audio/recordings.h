#pragma once
// Recordings with their transcripts: lists of files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/audio_config.h"
#include "data/rows_by_split.h"
#include "data/splits.h"

namespace zoo {

/// A recording of a corpus. Its samples have not been read.
struct Recording {
  std::filesystem::path file;
  std::string text;                        // what is said
  std::string speaker;                     // empty if the list does not say it
  int64_t sample_rate = 0, n_samples = 0;  // as in the file; read_headers() reads them
};

/// The recordings of a split, in the order of the lists, whose files are not opened yet. A list is a table
/// (data/tables.h) with the columns `audio`, the path of a WAV or FLAC file in the directory of the list or
/// below it, the text under one of the names config.text_column, and, if it has one, `speaker`. If the
/// configuration names no validation files, the share valid_fraction of the training recordings, drawn at
/// random once and for all, is for validation instead. Throws DataError with the place: no list, a path that
/// leaves its directory, no text.
RowsBySplit<std::vector<Recording>> listed_recordings(const DataConfig& config);

/// Opens the files of all recordings. Throws DataError for those that cannot be read or are longer than
/// config.max_seconds, of which it names up to ten.
void read_headers(std::vector<Recording>& recordings, const AudioConfig& config);
/// Both for one split.
std::vector<Recording> read_recordings(const DataConfig& config, Split split);

/// The samples of a file, resampled to config.sample_rate, played `speed` hundredths as fast as it was
/// spoken. Throws DataError as SoundFile, and for a file that is longer than config.max_seconds, before its
/// samples are read.
std::vector<float> read_samples(const std::filesystem::path& file, const AudioConfig& config,
                                int64_t speed = 100);
/// How many samples that gives for a recording of a list.
int64_t n_samples_read(const Recording& recording, const AudioConfig& config, int64_t speed = 100);

}  // namespace zoo
