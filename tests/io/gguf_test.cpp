// GGUF files: written and read again, and damaged ones. tests/parity compares with the package gguf.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "io/files.h"
#include "io/formats/gguf_file.h"
#include "io/formats/gguf_writer.h"
#include "io/safetensors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

class Gguf : public ::testing::Test {
 protected:
  std::string problem(const std::string& bytes) const {
    try {
      const GgufFile file(dir_.write("damaged.gguf", bytes));
      for (const auto& name : file.names()) file.tensor(name);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "none";
  }

  /// A file with two matrices and a vector, the matrices in this format.
  std::filesystem::path written(const BlockType& format) const {
    const auto plain = dir_ / "plain.safetensors", path = dir_ / "written.gguf";
    save_safetensors(plain, tensors_);
    write_gguf(path, keys_, SafetensorsFile(plain), [&](const std::string& name) -> const BlockType& {
      return name == "vector" ? plain_block_type(torch::kFloat) : format;
    });
    return path;
  }

  TempDir dir_;
  const GgufMetadata keys_{{"general.architecture", "test"},
                           {"test.whole", uint32_t{3'000'000'000}},
                           {"test.fraction", 1e-5F},
                           {"test.yes", true},
                           {"test.texts", std::vector<std::string>{"a", "", "ü"}},
                           {"test.numbers", std::vector<int32_t>{-1, 0, 7}},
                           {"test.scores", std::vector<float>{0.5F, -2}}};
  const TensorMap tensors_{{"first", torch::arange(5 * 64).view({5, 64}) * 0.25F - 40},
                           {"second", torch::linspace(-1, 1, 96).view({3, 32})},
                           {"vector", torch::tensor({1.0F, 2.5F, -3.0F})}};
};

TEST_F(Gguf, WritesWhatItReads) {
  for (const auto* const format :
       {&plain_block_type(torch::kFloat), &plain_block_type(torch::kHalf),
        &plain_block_type(torch::kBFloat16), &q8_0_block_type(), &q4_0_block_type()}) {
    SCOPED_TRACE(format->name);
    const GgufFile file(written(*format));
    EXPECT_EQ(file.metadata(), as_json(keys_));
    EXPECT_EQ(file.metadata()["test.fraction"].dump(), "1e-05");
    EXPECT_EQ(file.names().size(), tensors_.size());
    for (const auto& [name, tensor] : tensors_) {
      EXPECT_EQ(file.shape(name), tensor.sizes().vec());
      const auto& stored = name == "vector" ? plain_block_type(torch::kFloat) : *format;
      EXPECT_EQ(file.stored_as(name).id, stored.id);
      // A step of eight bits is 1/127 of the largest number. With four bits it is 1/8, and 7/8 is the largest
      // number of the other sign.
      const double error = stored.name == "F32" ? 0 : stored.name == "Q4_0" ? 0.126 : 0.005;
      const double largest = tensor.abs().max().item<double>();
      EXPECT_LE((file.tensor(name).to(torch::kFloat) - tensor).abs().max().item<double>(), error * largest);
    }
  }
}

TEST_F(Gguf, RefusesWhatIsCutOrWrong) {
  const auto whole = read_file(written(q8_0_block_type()));
  EXPECT_EQ(problem(whole), "none");
  for (const size_t size :
       {size_t{0}, size_t{3}, size_t{20}, size_t{100}, whole.size() / 2, whole.size() - 33})
    EXPECT_THAT(problem(whole.substr(0, size)), HasSubstr("damaged.gguf")) << size;
  auto other = whole;
  other[4] = 9;
  EXPECT_THAT(problem(other), HasSubstr("version 9"));
  other = whole;
  other[15] = 1;  // 2^56 tensors
  EXPECT_THAT(problem(other), HasSubstr("tensors"));
}

/// A tensor of float32 as a file describes it.
struct Described {
  std::string name;
  std::vector<uint64_t> lengths;
  uint64_t begin = 0;  // from the beginning of the data
};

/// The bytes of a file with these tensors, the data behind the header at a multiple of `alignment`: 0, 1, 2,
/// …
std::string gguf_bytes(const std::vector<Described>& tensors, size_t n_numbers, uint32_t alignment = 32) {
  std::string bytes = "GGUF";
  const auto put = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  const auto put_text = [&](const std::string& text) {
    put(uint64_t{text.size()});
    bytes += text;
  };
  constexpr uint32_t usual_alignment = 32, of_uint32 = 4, float32 = 0;
  put(uint32_t{3});  // version
  put(uint64_t{tensors.size()});
  put(uint64_t{alignment == usual_alignment ? 0U : 1U});  // keys
  if (alignment != usual_alignment) {
    put_text("general.alignment");
    put(of_uint32);
    put(alignment);
  }
  for (const auto& [name, lengths, begin] : tensors) {
    put_text(name);
    put(static_cast<uint32_t>(lengths.size()));
    for (const uint64_t length : lengths) put(length);
    put(float32);
    put(begin);
  }
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  for (size_t i = 0; i < n_numbers; ++i) put(static_cast<float>(i));
  return bytes;
}

TEST_F(Gguf, DataBeginAtTheAlignment) {
  for (const uint32_t alignment : {8U, 32U, 96U, 256U}) {
    // Names of every length, so that the header ends before, at and behind a multiple.
    for (size_t n = 1; n <= alignment; n += 3) {
      const GgufFile file(dir_.write("aligned.gguf", gguf_bytes({{std::string(n, 'w'), {3}}}, 3, alignment)));
      EXPECT_TRUE(torch::equal(file.tensor(std::string(n, 'w')), torch::arange(3, torch::kFloat)))
          << alignment << " " << n;
    }
  }
}

TEST_F(Gguf, TensorsThatShareAByteAreRefused) {
  EXPECT_EQ(problem(gguf_bytes({{"a", {4}, 0}, {"b", {4}, 16}}, 8)), "none");
  EXPECT_THAT(problem(gguf_bytes({{"a", {4}, 0}, {"b", {4}, 15}}, 8)), HasSubstr("overlap at byte 15"));
  EXPECT_THAT(problem(gguf_bytes({{"a", {4}, 15}, {"b", {4}, 0}}, 8)), HasSubstr("overlap at byte 15"));
}

TEST_F(Gguf, AFileWithoutItsLastByteIsRefused) {
  const auto whole = gguf_bytes({{"a", {4}, 0}, {"b", {5}, 16}}, 9);
  EXPECT_EQ(problem(whole), "none");
  EXPECT_THAT(problem(whole.substr(0, whole.size() - 1)), HasSubstr("past the end of the file"));
}

/// A tensor that is converted is read piece by piece, of about a million numbers each.
TEST_F(Gguf, LargeTensorsAreReadInPieces) {
  constexpr int64_t n_rows = 3 * (int64_t{1} << 15) + 7;
  const auto numbers = torch::arange(n_rows * 32, torch::kFloat).view({n_rows, 32}).remainder(1009);
  const auto plain = dir_ / "plain.safetensors", path = dir_ / "large.gguf";
  save_safetensors(plain, {{"w", numbers}});
  for (const auto* const format : {&plain_block_type(torch::kFloat), &q8_0_block_type()}) {
    write_gguf(path, keys_, SafetensorsFile(plain), [&](const auto&) -> const BlockType& { return *format; });
    const auto read = GgufFile(path).tensor("w").to(torch::kFloat);
    EXPECT_LE((read - numbers).abs().max().item<double>(), format->name == "F32" ? 0 : 0.005 * 1009);
    std::filesystem::remove(path);
  }
}

// LibTorch's strides hold the product of the other lengths.
TEST_F(Gguf, RefusesShapesThatOverflowBesideALengthOfZero) {
  const auto file = [](const std::vector<uint64_t>& lengths) { return gguf_bytes({{"w", lengths}}, 16); };
  EXPECT_EQ(problem(file({0, 8})), "none");
  for (const auto& lengths : {std::vector<uint64_t>{0, uint64_t{1} << 62, uint64_t{1} << 62},
                              std::vector<uint64_t>{uint64_t{1} << 63, 0}})
    EXPECT_THAT(problem(file(lengths)), HasSubstr("the shape of 'w' overflows 64 bits"));
}

}  // namespace
}  // namespace zoo::testing
