// GGUF files: written and read again, and damaged ones. tests/parity compares with the package gguf.

#include <string>

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

// LibTorch's strides hold the product of the other lengths.
TEST_F(Gguf, RefusesShapesThatOverflowBesideALengthOfZero) {
  const auto file = [](const std::vector<uint64_t>& lengths) {
    std::string bytes = "GGUF";
    const auto put = [&](auto number) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
    };
    put(uint32_t{3});  // version
    put(uint64_t{1});  // tensors
    put(uint64_t{0});  // keys
    put(uint64_t{1});
    bytes += "w";
    put(static_cast<uint32_t>(lengths.size()));
    for (const uint64_t length : lengths) put(length);
    put(uint32_t{0});  // float32
    put(uint64_t{0});
    return bytes + std::string(64, '\0');
  };
  EXPECT_EQ(problem(file({0, 8})), "none");
  for (const auto& lengths : {std::vector<uint64_t>{0, uint64_t{1} << 62, uint64_t{1} << 62},
                              std::vector<uint64_t>{uint64_t{1} << 63, 0}})
    EXPECT_THAT(problem(file(lengths)), HasSubstr("the shape of 'w' overflows 64 bits"));
}

}  // namespace
}  // namespace zoo::testing
