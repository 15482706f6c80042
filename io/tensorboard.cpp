#include "io/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "io/files.h"

namespace zoo {
namespace {

// Field numbers of event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr uint64_t kSessionStart = 1;

/// Writes the fields of one protobuf message.
class Message {
 public:
  Message& integer(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
    return *this;
  }
  Message& fixed(int field, double value) {
    tag(field, 1);
    raw(&value, sizeof value);
    return *this;
  }
  Message& fixed(int field, float value) {
    tag(field, 5);
    raw(&value, sizeof value);
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    out_ += value;
    return *this;
  }
  const std::string& encoded() const { return out_; }

 private:
  void tag(int field, uint64_t wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }

  std::string out_;
};

static_assert(std::endian::native == std::endian::little, "records are little-endian");

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The first free name: a run that resumes within the same second must not write into the old file.
OutputFile create_event_file(const std::filesystem::path& directory) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "localhost");
  const std::string name =
      fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<int64_t>(wall_time()), host, ::getpid());
  std::filesystem::path path = directory / name;
  for (int i = 1; is_there(path); ++i) path = directory / fmt::format("{}.{}", name, i);
  return {path, OutputFile::Mode::kCreate};
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}

/// A checksum over data that contains checksums is weak, so records hold theirs rotated and shifted.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

std::string little_endian(auto value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = make_crc_table();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(static_cast<uint64_t>(bytes.size()));
  std::string record = length + little_endian(masked_crc(length));
  record += bytes;
  return record + little_endian(masked_crc(bytes));
}

EventFile::EventFile(const std::filesystem::path& directory, int64_t step)
    : file_(create_event_file(directory)) {
  file_.write(
      tfrecord(Message().fixed(kWallTime, wall_time()).bytes(kFileVersion, "brain.Event:2").encoded()));
  if (step > 0) {
    const auto start = Message().integer(kStatus, kSessionStart);
    file_.write(tfrecord(Message()
                             .fixed(kWallTime, wall_time())
                             .integer(kStep, static_cast<uint64_t>(step) + 1)
                             .bytes(kSessionLog, start.encoded())
                             .encoded()));
  }
}

void EventFile::write(int64_t step, const std::map<std::string, double>& scalars) {
  Message summary;
  for (const auto& [name, value] : scalars) {
    const auto entry = Message().bytes(kTag, name).fixed(kSimpleValue, static_cast<float>(value));
    summary.bytes(kValue, entry.encoded());
  }
  file_.write(tfrecord(Message()
                           .fixed(kWallTime, wall_time())
                           .integer(kStep, static_cast<uint64_t>(step))
                           .bytes(kSummary, summary.encoded())
                           .encoded()));
}

}  // namespace zoo
