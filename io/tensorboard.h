#pragma once
// TensorBoard's event files: TFRecord records, each of which holds an Event message in protobuf encoding
// (tensorflow/core/util/event.proto). The few fields that scalars need are encoded by hand.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "io/output_file.h"

namespace zoo {

/// CRC-32C (Castagnoli) of `bytes`.
uint32_t crc32c(std::string_view bytes);

/// A record: the length of `bytes`, its masked checksum, `bytes`, and their masked checksum.
std::string tfrecord(std::string_view bytes);

/// Scalars over steps, in a new file DIRECTORY/events.out.tfevents.SECONDS.HOST.PID.
class EventFile {
 public:
  /// `step` > 0 tells the reader that a run resumes there, and that later steps in older files are void.
  /// Throws SystemError.
  EventFile(const std::filesystem::path& directory, int64_t step);
  /// Writes one event with all values. Throws SystemError.
  void write(int64_t step, const std::map<std::string, double>& scalars);

 private:
  OutputFile file_;
};

}  // namespace zoo
