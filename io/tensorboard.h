#pragma once
// TensorBoard's event files: records framed as in a TFRecord file, each an Event message in protobuf encoding
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

/// `bytes` between its length and the masked check sums of both.
std::string tfrecord(std::string_view bytes);

/// Scalars over steps, in a file of its own: DIRECTORY/events.out.tfevents.SECONDS.HOST.PID.
class EventFile {
 public:
  /// `step` > 0 tells the reader that a run is resumed there and what older files say of later steps does not
  /// count. Throws SystemError.
  EventFile(const std::filesystem::path& directory, int64_t step);
  /// One event with all values. Throws SystemError.
  void write(int64_t step, const std::map<std::string, double>& scalars);

 private:
  OutputFile file_;
};

}  // namespace zoo
