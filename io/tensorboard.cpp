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
enum EventField : uint64_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField : uint64_t { kValue = 1 };
enum ValueField : uint64_t { kTag = 1, kSimpleValue = 2 };
enum SessionLogField : uint64_t { kStatus = 1 };
constexpr uint64_t kSessionStart = 1;

static_assert(std::endian::native == std::endian::little, "numbers are little-endian");
std::string little_endian(auto value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// The fields of a protobuf message: number and wire type, then the value.
std::string field(uint64_t number, uint64_t value) { return varint(number << 3) + varint(value); }
std::string field(uint64_t number, double value) { return varint(number << 3 | 1) + little_endian(value); }
std::string field(uint64_t number, float value) { return varint(number << 3 | 5) + little_endian(value); }
std::string field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

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
  file_.write(tfrecord(field(kWallTime, wall_time()) + field(kFileVersion, std::string("brain.Event:2"))));
  if (step > 0) {
    file_.write(tfrecord(field(kWallTime, wall_time()) + field(kStep, static_cast<uint64_t>(step) + 1) +
                         field(kSessionLog, field(kStatus, kSessionStart))));
  }
}

void EventFile::write(int64_t step, const std::map<std::string, double>& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars)
    summary += field(kValue, field(kTag, name) + field(kSimpleValue, static_cast<float>(value)));
  file_.write(tfrecord(field(kWallTime, wall_time()) + field(kStep, static_cast<uint64_t>(step)) +
                       field(kSummary, summary)));
}

}  // namespace zoo
