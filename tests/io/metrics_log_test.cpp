#include "io/metrics_log.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/files.h"
#include "io/tensorboard.h"
#include "tests/io/small_disk.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::StartsWith;

// --- an independent reader of event files, written from the descriptions of the formats ---

struct Field {
  int number;
  int wire_type;
  uint64_t integer;   // varints and fixed numbers
  std::string bytes;  // length-delimited
};

uint64_t varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    if (bytes.empty() || shift > 63) throw std::runtime_error("varint");
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const uint64_t tag = varint(message);
    Field field{static_cast<int>(tag >> 3), static_cast<int>(tag & 7), 0, ""};
    if (field.wire_type == 0) {
      field.integer = varint(message);
    } else {
      const size_t size = field.wire_type == 1 ? 8 : field.wire_type == 5 ? 4 : varint(message);
      if (size > message.size()) throw std::runtime_error("field past the end");
      field.bytes = message.substr(0, size);
      if (field.wire_type != 2) std::memcpy(&field.integer, field.bytes.data(), size);
      message.remove_prefix(size);
    }
    fields.push_back(field);
  }
  return fields;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool session_start = false;
  std::map<std::string, float> scalars;
};

uint32_t unmasked(uint32_t crc) { return std::rotl(crc - 0xA282EAD8u, 15); }

std::vector<Event> read_events(const fs::path& path) {
  const std::string file = read_file(path);
  std::string_view rest = file;
  std::vector<Event> events;
  while (!rest.empty()) {
    uint64_t size = 0;
    uint32_t size_crc = 0, data_crc = 0;
    if (rest.size() < 16) throw std::runtime_error("record cut off");
    std::memcpy(&size, rest.data(), 8);
    std::memcpy(&size_crc, rest.data() + 8, 4);
    const auto data = rest.substr(12, size);
    std::memcpy(&data_crc, rest.data() + 12 + size, 4);
    EXPECT_EQ(unmasked(size_crc), crc32c(rest.substr(0, 8)));
    EXPECT_EQ(unmasked(data_crc), crc32c(data));
    rest.remove_prefix(16 + size);
    Event event;
    for (const auto& field : fields_of(data)) {
      if (field.number == 1) event.wall_time = std::bit_cast<double>(field.integer);
      if (field.number == 2) event.step = static_cast<int64_t>(field.integer);
      if (field.number == 3) event.version = field.bytes;
      if (field.number == 7) {
        for (const auto& log : fields_of(field.bytes))
          event.session_start = log.number == 1 && log.integer == 1;
      }
      if (field.number != 5) continue;
      for (const auto& value : fields_of(field.bytes)) {
        std::string tag;
        float number = 0;
        for (const auto& part : fields_of(value.bytes)) {
          if (part.number == 1) tag = part.bytes;
          if (part.number == 2) number = std::bit_cast<float>(static_cast<uint32_t>(part.integer));
        }
        event.scalars[tag] = number;
      }
    }
    events.push_back(event);
  }
  return events;
}

std::vector<fs::path> event_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Crc32c, KnownVectors) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(MetricsLog, WritesJsonLines) {
  const TempDir dir;
  {
    MetricsLog log(dir / "run/sub", 0);
    log.write(1, 64, 0.5, {{"train_loss", 2.5}, {"lr", 1e-5}, {"grad_norm", NAN}});
    log.write(2, 1'000'000'000'000, 1, {{"valid_loss", INFINITY}});
    // The lines are in the file before the log is closed, so a killed run loses nothing.
    EXPECT_EQ(
        read_file(dir / "run/sub/metrics.jsonl"),
        R"({"step": 1, "tokens": 64, "seconds": 0.5, "grad_norm": null, "lr": 1e-05, "train_loss": 2.5})"
        "\n"
        R"({"step": 2, "tokens": 1000000000000, "seconds": 1, "valid_loss": null})"
        "\n");
  }
}

TEST(MetricsLog, NumbersReadBackExactly) {
  const TempDir dir;
  MetricsLog log(dir.path(), 0);
  const double third = 1.0 / 3, tiny = 5e-324;
  log.write(7, 8, third, {{"a \"b\"", tiny}});
  const auto line = nlohmann::json::parse(read_file(dir / "metrics.jsonl"));
  EXPECT_EQ(line["seconds"].get<double>(), third);
  EXPECT_EQ(line["a \"b\""].get<double>(), tiny);
  EXPECT_EQ(line["step"].get<int64_t>(), 7);
}

TEST(MetricsLog, ResumingDropsLaterAndBrokenLines) {
  const TempDir dir;
  {
    MetricsLog(dir.path(), 0).write(10, 0, 0, {});
  }
  const std::string ten = read_file(dir / "metrics.jsonl");
  dir.write("metrics.jsonl",
            ten + "{\"step\": 20}\nnot json\n{\"tokens\": 3}\n[1]\n{\"step\": 30}\n{\"step\": 2");
  MetricsLog log(dir.path(), 20);
  EXPECT_EQ(read_file(dir / "metrics.jsonl"), ten + "{\"step\": 20}\n");
  log.write(21, 0, 0, {});
  EXPECT_THAT(read_file(dir / "metrics.jsonl"), StartsWith(ten + "{\"step\": 20}\n{\"step\": 21,"));
}

TEST(MetricsLog, WritesTensorBoardEvents) {
  const TempDir dir;
  MetricsLog log(dir.path(), 0);
  log.write(300, 64, 0.5, {{"train_loss", 2.5}, {"lr", 1e-3}, {"grad_norm", INFINITY}});
  log.write(int64_t{1} << 40, 128, 1.5, {{"train_loss", 1.25}});
  const auto files = event_files(dir.path());
  ASSERT_EQ(files.size(), 1u);
  const auto events = read_events(files[0]);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 300);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"train_loss", 2.5f},
                                                             {"lr", 1e-3f},
                                                             {"grad_norm", INFINITY},
                                                             {"tokens", 64.f},
                                                             {"seconds", 0.5f}}));
  EXPECT_EQ(events[2].step, int64_t{1} << 40);
  EXPECT_EQ(events[2].scalars.at("train_loss"), 1.25f);
  const auto now = static_cast<double>(::time(nullptr));
  EXPECT_THAT(events[1].wall_time, AllOf(Ge(now - 60), Le(now + 60)));
}

TEST(MetricsLog, EveryStartHasAnEventFileOfItsOwn) {
  const TempDir dir;
  for (int i = 0; i < 3; ++i) MetricsLog(dir.path(), 100 * i).write(100 * i + 1, 0, 0, {{"train_loss", i}});
  const auto files = event_files(dir.path());
  ASSERT_EQ(files.size(), 3u);
  int starts = 0;
  for (const auto& file : files) {
    for (const auto& event : read_events(file)) {
      if (!event.session_start) continue;
      ++starts;
      EXPECT_EQ(event.step % 100, 1) << "this step and later ones in older files are void";
    }
  }
  EXPECT_EQ(starts, 2);
}

TEST(MetricsLog, FollowsNoLinks) {
  const TempDir dir;
  const auto victim = dir.write("victim", "{\"step\": 1}\nnot a row\n");
  fs::create_directory(dir / "run");
  fs::create_symlink("../victim", dir / "run/metrics.jsonl");
  EXPECT_THAT(message_of<CheckpointError>([&] { MetricsLog(dir / "run", 0); }), HasSubstr("it is a link"));
  fs::remove(dir / "run/metrics.jsonl");
  fs::create_hard_link(victim, dir / "run/metrics.jsonl");
  MetricsLog(dir / "run", 1).write(2, 0, 0, {});  // a row is removed, so the file is replaced
  EXPECT_EQ(read_file(victim), "{\"step\": 1}\nnot a row\n");
}

TEST(MetricsLog, FullDisksAreReported) {
  const TempDir dir;
  MetricsLog log(dir.path(), 0);
  log.write(1, 0, 0, {});
  std::string message;
  {
    const SmallDisk full(fs::file_size(dir / "metrics.jsonl") + 10);
    message = message_of<SystemError>([&] { log.write(2, 0, 0, {{"train_loss", 1}}); });
  }
  EXPECT_EQ(message, "cannot write '" + (dir / "metrics.jsonl").string() + "': File too large");
  // Resuming the run drops the incomplete line.
  MetricsLog again(dir.path(), 5);
  EXPECT_EQ(nlohmann::json::parse(read_file(dir / "metrics.jsonl"))["step"], 1);
  EXPECT_THAT(message_of<SystemError>([&] { MetricsLog{dir / "metrics.jsonl", 0}; }),
              HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace zoo::testing
