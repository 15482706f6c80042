#include "io/safetensors.h"

#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/files.h"
#include "tests/io/small_disk.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

/// A file with this header and `data` bytes of data.
std::string file_of(std::string_view header, size_t data = 0) {
  const uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), 8);
  bytes += header;
  for (size_t i = 0; i < data; ++i) bytes += static_cast<char>(i);
  return bytes;
}

bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.numel() == 0 ||
          std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0);
}

TensorMap one_of_each() {
  torch::manual_seed(3);
  const auto noise = torch::randn({3, 5}) * 50;
  return {{"f64", noise.to(torch::kFloat64)},     {"f32", noise},
          {"f16", noise.to(torch::kFloat16)},     {"bf16", noise.to(torch::kBFloat16)},
          {"i64", noise.to(torch::kInt64)},       {"i32", noise.to(torch::kInt32)},
          {"i16", noise.to(torch::kInt16)},       {"i8", noise.to(torch::kInt8)},
          {"u8", noise.abs().to(torch::kUInt8)},  {"bool", noise > 0},
          {"scalar", torch::tensor(7.5)},         {"empty", torch::empty({0, 4})},
          {"näme \"quoted\"\n", torch::arange(3)}};
}

TEST(Safetensors, RoundTripsEveryDtype) {
  const TempDir dir;
  const auto tensors = one_of_each();
  save_safetensors(dir / "t", tensors, {{"format", "pt"}, {"note", "ä\"\\\n"}});
  const SafetensorsFile file(dir / "t");
  EXPECT_EQ(file.names().size(), tensors.size());
  EXPECT_EQ(file.metadata(), (StringMap{{"format", "pt"}, {"note", "ä\"\\\n"}}));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(file.contains(name));
    EXPECT_TRUE(same(file.tensor(name), tensor)) << name;
  }
  EXPECT_FALSE(file.contains("other"));
}

TEST(Safetensors, WritesViewsAndKeepsNanBits) {
  const TempDir dir;
  const auto base = torch::arange(12, torch::kFloat32).view({3, 4});
  auto odd = torch::tensor({0.f, -0.f, INFINITY});
  odd[1].fill_(std::nanf("5"));
  const auto weight = torch::randn({2}, torch::requires_grad());
  save_safetensors(dir / "t", {{"t", base.t()},
                               {"column", base.select(1, 2)},
                               {"expanded", base[0].expand({2, 4})},
                               {"odd", odd},
                               {"weight", weight}});
  const SafetensorsFile file(dir / "t");
  EXPECT_TRUE(same(file.tensor("t"), base.t()));
  EXPECT_TRUE(same(file.tensor("column"), base.select(1, 2)));
  EXPECT_TRUE(same(file.tensor("expanded"), base[0].expand({2, 4})));
  EXPECT_TRUE(same(file.tensor("odd"), odd));
  EXPECT_TRUE(same(file.tensor("weight"), weight.detach()));
  EXPECT_FALSE(file.tensor("weight").requires_grad());
}

TEST(Safetensors, LaysTheFileOutAsTheReference) {
  const TempDir dir;
  save_safetensors(dir / "t", {{"b", torch::zeros({2}, torch::kFloat32)},
                               {"a", torch::ones({1}, torch::kUInt8)},
                               {"c", torch::ones({1, 1}, torch::kInt64)}});
  const std::string bytes = read_file(dir / "t");
  const std::string header = R"({"c":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  EXPECT_EQ(size % 8, 0u);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(8 + header.size(), size - header.size()), std::string(size - header.size(), ' '));
  EXPECT_EQ(bytes.size(), 8 + size + 17);
  save_safetensors(dir / "none", {});
  EXPECT_EQ(read_file(dir / "none"), file_of("{}      "));
  EXPECT_TRUE(SafetensorsFile(dir / "none").names().empty());
}

TEST(Safetensors, TensorsHaveMemoryOfTheirOwn) {
  const TempDir dir;
  const auto expected = torch::arange(1000, torch::kFloat32);
  save_safetensors(dir / "t", {{"x", expected}});
  const SafetensorsFile file(dir / "t");
  const auto first = file.tensor("x");
  first.zero_();
  EXPECT_TRUE(same(file.tensor("x"), expected));
  fs::remove(dir / "t");
  EXPECT_TRUE(same(file.tensor("x"), expected)) << "the open file is still there";
}

TEST(Safetensors, ReadsIntoTensors) {
  const TempDir dir;
  const auto tensors = one_of_each();
  save_safetensors(dir / "t", tensors);
  const SafetensorsFile file(dir / "t");
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(file.dtype(name), tensor.scalar_type());
    EXPECT_EQ(torch::IntArrayRef(file.shape(name)), tensor.sizes());
    const auto alike = torch::zeros_like(tensor);
    file.read_into(alike, name);
    EXPECT_TRUE(same(alike, tensor)) << name;
    const auto converted = torch::zeros(tensor.sizes(), torch::kFloat64);
    file.read_into(converted, name);
    EXPECT_TRUE(same(converted, tensor.to(torch::kFloat64))) << name;
  }
  const auto strided = torch::zeros({5, 3}).t();
  file.read_into(strided, "f32");
  EXPECT_TRUE(same(strided, tensors.at("f32")));
}

TEST(Safetensors, MayBeLinksButNoPipes) {
  const TempDir dir;
  save_safetensors(dir / "t", {{"x", torch::ones(3)}});
  fs::create_symlink("t", dir / "link");
  EXPECT_TRUE(same(SafetensorsFile(dir / "link").tensor("x"), torch::ones(3)));
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<CheckpointError>([&] { SafetensorsFile{dir / "pipe"}; }),
              EndsWith("it is a pipe, not a regular file"));
}

TEST(Safetensors, UnalignedDataIsCopied) {
  const TempDir dir;
  // A header of odd length, as old writers made it, and one byte before the numbers.
  const auto path = dir.write(
      "t",
      file_of(
          R"({"x":{"dtype":"F64","shape":[2],"data_offsets":[1,17]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          17));
  const auto tensor = SafetensorsFile(path).tensor("x");
  double expected[2];
  std::memcpy(expected, read_file(path).data() + read_file(path).size() - 16, 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 8, 0u);
  EXPECT_EQ(tensor[0].item<double>(), expected[0]);
  EXPECT_EQ(tensor[1].item<double>(), expected[1]);
}

TEST(Safetensors, UnknownNamesAndMissingFiles) {
  const TempDir dir;
  save_safetensors(dir / "t", {{"layers.0.weight", torch::zeros(1)}});
  const SafetensorsFile file(dir / "t");
  EXPECT_THAT(message_of<CheckpointError>([&] { file.tensor("layer.0.weight"); }),
              EndsWith("/t' has no tensor 'layer.0.weight'; did you mean 'layers.0.weight'?"));
  EXPECT_THAT(message_of<CheckpointError>([&] { SafetensorsFile{dir / "none"}; }),
              EndsWith("/none': No such file or directory"));
  EXPECT_THAT(message_of<CheckpointError>([&] { SafetensorsFile{dir.path()}; }), EndsWith("Is a directory"));
}

// --- hostile files ---

struct Hostile {
  const char* name;
  std::string bytes;
  const char* expected;
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileSafetensors : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedWithThePath) {
  const TempDir dir;
  const auto path = dir.write("hostile.safetensors", GetParam().bytes);
  const std::string message = message_of<CheckpointError>([&] {
    const SafetensorsFile file(path);
    for (const auto& name : file.names()) file.tensor(name);
  });
  EXPECT_THAT(message, HasSubstr(path.string()));
  EXPECT_THAT(message, EndsWith(GetParam().expected));
}

// A file may have tensors of types that nobody asks for.
TEST(Safetensors, OfAnUnknownTypeAreRefusedWhenTheyAreRead) {
  const TempDir dir;
  const auto path = dir.write("mixed", file_of(R"({"x":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]},)"
                                               R"("y":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                                               6));
  const SafetensorsFile file(path);
  EXPECT_EQ(file.tensor("y").numel(), 2);
  EXPECT_EQ(file.shape("x"), std::vector<int64_t>{4});
  EXPECT_THAT(message_of<CheckpointError>([&] { file.tensor("x"); }), HasSubstr("the dtype 'F8_E5M2'"));
}

std::string length_only(uint64_t length, std::string_view rest = "{}") {
  return std::string(reinterpret_cast<const char*>(&length), 8).append(rest);
}

std::string entry(std::string_view fields, size_t data = 4) {
  return file_of(fmt::format(R"({{"x":{{{}}}}})", fields), data);
}

std::string f32(std::string_view shape, std::string_view offsets, size_t data = 4) {
  return entry(fmt::format(R"("dtype":"F32","shape":{},"data_offsets":{})", shape, offsets), data);
}

std::string two(std::string_view first, std::string_view second, size_t data) {
  return file_of(
      fmt::format(
          R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
          first, second),
      data);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, HostileSafetensors,
    ::testing::Values(
        Hostile{"empty", "", ": the file is empty: download it again"},
        Hostile{"short", "1234567", ": 7 bytes are too few for a header"},
        Hostile{"past_end", length_only(3), "the header of 3 bytes goes past the end of the file (10 bytes)"},
        Hostile{"huge", length_only(100'000'001), "a header of 100000001 bytes is too large"},
        Hostile{"two63", length_only(uint64_t{1} << 63),
                "a header of 9223372036854775808 bytes is too large"},
        Hostile{"all_ones", length_only(~uint64_t{0}), "a header of 18446744073709551615 bytes is too large"},
        Hostile{"no_header", length_only(0), "the header does not begin with '{'"},
        Hostile{"begin_after_end", f32("[1]", "[4,0]"), "'x' begins at byte 4, after its end at byte 0"},
        Hostile{"range_past_end", f32("[2]", "[0,8]"),
                "'x' ends at byte 8 of the data, which has 4 bytes; is the file truncated?"},
        Hostile{
            "range_two63", f32("[1]", "[0,9223372036854775808]"),
            "'x' ends at byte 9223372036854775808 of the data, which has 4 bytes; is the file truncated?"},
        Hostile{
            "range_wraps", f32("[1]", "[18446744073709551615,18446744073709551615]"),
            "'x' ends at byte 18446744073709551615 of the data, which has 4 bytes; is the file truncated?"},
        Hostile{"too_small", f32("[1]", "[0,3]", 3),
                "'x' takes 4 bytes by dtype and shape, but 3 by its offsets"},
        Hostile{"too_large", f32("[1]", "[0,8]", 8),
                "'x' takes 4 bytes by dtype and shape, but 8 by its offsets"},
        Hostile{"product", f32("[4294967296,4294967296]", "[0,4]"), "the shape of 'x' overflows 64 bits"},
        Hostile{"product_wraps_to_4", f32("[4611686018427387905]", "[0,4]"),
                "the shape of 'x' overflows 64 bits"},
        Hostile{"empty_with_huge_strides", f32("[0,4294967296,4294967296]", "[0,0]", 0),
                "the shape of 'x' overflows 64 bits"},
        Hostile{"dim_two64", f32("[18446744073709551615]", "[0,4]"), "the shape of 'x' overflows 64 bits"},
        Hostile{"dim_beyond", f32("[18446744073709551616]", "[0,4]"),
                "'shape' of 'x' has a number that is not a 64-bit integer"},
        Hostile{"negative", f32("[-1]", "[0,4]"), "'shape' of 'x' has a negative number"},
        Hostile{"fraction", f32("[1.0]", "[0,4]"),
                "'shape' of 'x' has a number that is not a 64-bit integer"},
        Hostile{"rank",
                f32("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                    "1,1,1,1,1,"
                    "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                    "[0,4]"),
                "'shape' of 'x' has a list of more than 64 numbers"},
        Hostile{"overlap", two("[0,2]", "[1,3]", 3), "two tensors overlap at byte 1 of the data"},
        Hostile{"same_range", two("[0,2]", "[0,2]", 2), "two tensors overlap at byte 0 of the data"},
        Hostile{"hole", two("[0,2]", "[3,5]", 5), "bytes 2 to 3 of the data belong to no tensor"},
        Hostile{"hole_first", two("[1,3]", "[3,5]", 5), "bytes 0 to 1 of the data belong to no tensor"},
        Hostile{"hole_last", two("[0,2]", "[2,4]", 5), "bytes 4 to 5 of the data belong to no tensor"},
        Hostile{"only_data", file_of("{}", 1), "bytes 0 to 1 of the data belong to no tensor"}),
    [](const auto& hostile) { return hostile.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Headers, HostileSafetensors,
    ::testing::Values(
        Hostile{"bad_json", file_of("{\"x\""), "the header is not valid JSON at byte 5"},
        Hostile{"trailing", file_of("{}x"), "the header is not valid JSON at byte 3"},
        Hostile{"zeros", file_of(std::string("{}\0\0", 4)), "the header is not valid JSON at byte 3"},
        Hostile{"blank_first", file_of(" {}"), "the header does not begin with '{'"},
        Hostile{"list", file_of("[]"), "the header does not begin with '{'"},
        Hostile{"not_utf8", file_of("{\"\xff\":{}}"), "the header is not valid JSON at byte 3"},
        Hostile{"unknown_dtype", entry(R"("dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4])"),
                "the dtype 'F8_E5M2', which is not one of F64, F32, F16, BF16, F8_E4M3, I64, I32, I16, I8, "
                "U8, BOOL"},
        Hostile{"unknown_dtype_too_large", entry(R"("dtype":"F4","shape":[33],"data_offsets":[0,4])"),
                "'x' has 33 numbers by its shape, but 4 bytes"},
        Hostile{"no_dtype", entry(R"("shape":[1],"data_offsets":[0,4])"),
                "'x' lacks dtype, shape or data_offsets"},
        Hostile{"no_shape", entry(R"("dtype":"F32","data_offsets":[0,4])"),
                "'x' lacks dtype, shape or data_offsets"},
        Hostile{"no_offsets", entry(R"("dtype":"F32","shape":[1])"),
                "'x' lacks dtype, shape or data_offsets"},
        Hostile{"three_offsets", f32("[1]", "[0,4,4]"), "data_offsets of 'x' are not two numbers"},
        Hostile{"unknown_key", entry(R"("dtype":"F32","color":"red")"), "'x' has the unknown key 'color'"},
        Hostile{"key_twice", entry(R"("dtype":"F32","dtype":"F32")"), "'x' has the key 'dtype' twice"},
        Hostile{"shape_twice", entry(R"("shape":[1],"shape":[1])"), "'x' has the key 'shape' twice"},
        Hostile{"name_twice", file_of(R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{}})"),
                "the name 'x' appears twice"},
        Hostile{"tensor_null", file_of(R"({"x":null})"), "'x' has null"},
        Hostile{"tensor_list", file_of(R"({"x":[1]})"), "'x' has a list where none belongs"},
        Hostile{"tensor_string", file_of(R"({"x":"y"})"), "'x' has a string where none belongs"},
        Hostile{"tensor_number", file_of(R"({"x":1})"), "'x' has a number where none belongs"},
        Hostile{"dtype_number", entry(R"("dtype":1)"), "'dtype' of 'x' has a number where none belongs"},
        Hostile{"dtype_list", entry(R"("dtype":["F32"])"), "'dtype' of 'x' has a list where none belongs"},
        Hostile{"shape_string", entry(R"("shape":"1")"), "'shape' of 'x' has a string where none belongs"},
        Hostile{"shape_nested", entry(R"("shape":[[1]])"), "'shape' of 'x' has a list where none belongs"},
        Hostile{"shape_object", entry(R"("shape":{})"), "'shape' of 'x' has an object where none belongs"},
        Hostile{"shape_strings", entry(R"("shape":["1"])"), "'shape' of 'x' has a string where none belongs"},
        Hostile{"shape_bool", entry(R"("shape":[true])"), "'shape' of 'x' has true or false"},
        Hostile{"metadata_number", file_of(R"({"__metadata__":{"a":1}})"),
                "'a' of '__metadata__' has a number where none belongs"},
        Hostile{"metadata_null", file_of(R"({"__metadata__":{"a":null}})"), "'a' of '__metadata__' has null"},
        Hostile{"metadata_list", file_of(R"({"__metadata__":{"a":[]}})"),
                "'a' of '__metadata__' has a list where none belongs"},
        Hostile{"metadata_object", file_of(R"({"__metadata__":{"a":{}}})"),
                "'a' of '__metadata__' has an object where none belongs"},
        Hostile{"metadata_string", file_of(R"({"__metadata__":"a"})"),
                "'__metadata__' has a string where none belongs"},
        Hostile{"metadata_twice", file_of(R"({"__metadata__":{},"__metadata__":{}})"),
                "the name '__metadata__' appears twice"},
        Hostile{"metadata_key_twice", file_of(R"({"__metadata__":{"a":"","a":""}})"),
                "metadata 'a' appears twice"},
        Hostile{"deep_lists", file_of(R"({"x":{"shape":)" + std::string(1 << 20, '[')),
                "'shape' of 'x' has a list where none belongs"},
        Hostile{"deep_objects",
                [] {
                  std::string deep;
                  for (int i = 0; i < 200000; ++i) deep += R"({"a":)";
                  return file_of(deep);
                }(),
                "'a' has the unknown key 'a'"}),
    [](const auto& hostile) { return hostile.param.name; });

TEST(HostileSafetensors, BoolBytesAreChecked) {
  const TempDir dir;
  const auto path = dir.write("t", file_of(R"({"x":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3));
  const SafetensorsFile file(path);  // 0, 1, 2
  EXPECT_THAT(message_of<CheckpointError>([&] { file.tensor("x"); }),
              EndsWith("holds bytes other than 0 and 1"));
}

// With a mapped file this is a SIGBUS.
TEST(HostileSafetensors, AFileThatBecomesShorterIsAnError) {
  const TempDir dir;
  save_safetensors(dir / "t", {{"x", torch::ones({100'000})}});
  const SafetensorsFile file(dir / "t");
  fs::resize_file(dir / "t", 50'000);
  const auto into = torch::zeros({100'000});
  EXPECT_THAT(message_of<CheckpointError>([&] { file.tensor("x"); }),
              EndsWith("it ends at byte 50000; was it cut while it was read?"));
  EXPECT_THAT(message_of<CheckpointError>([&] { file.read_into(into, "x"); }), HasSubstr("byte 50000"));
}

TEST(HostileSafetensors, EveryTruncationAndByteFlipIsReadOrRefused) {
  const TempDir dir;
  save_safetensors(dir / "good", {{"a", torch::ones({2, 2})}, {"b", torch::ones({3}, torch::kBool)}},
                   {{"k", "v"}});
  const std::string good = read_file(dir / "good");
  const auto try_to_read = [&](const std::string& bytes) {
    const auto path = dir.write("bad", bytes);
    try {
      const SafetensorsFile file(path);
      for (const auto& name : file.names()) file.tensor(name).sum();
      return true;
    } catch (const CheckpointError&) {
      return false;
    }
  };
  ASSERT_TRUE(try_to_read(good));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(try_to_read(good.substr(0, i)));
    for (const int flip : {0x01, 0x08, 0x20, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      try_to_read(bad);
    }
  }
}

// --- writing ---

TEST(SaveSafetensors, FullDisksAreReported) {
  const TensorMap tensors = {{"x", torch::zeros({100000})}};
  const TempDir dir;
  std::string message;
  {
    const SmallDisk full(5000);
    message = message_of<SystemError>([&] { save_safetensors(dir / "t", tensors); });
  }
  EXPECT_EQ(message, "cannot write '" + (dir / "t").string() + "': File too large");
  EXPECT_THAT(message_of<CheckpointError>([&] { SafetensorsFile{dir / "t"}; }),
              EndsWith("is the file truncated?"));
  EXPECT_THAT(message_of<SystemError>([&] { save_safetensors(dir / "no/t", tensors); }),
              EndsWith("No such file or directory"));
}

TEST(SaveSafetensors, RefusesWhatTheFormatCannotHold) {
  const TempDir dir;
  const auto problem = [&](const TensorMap& tensors, const StringMap& metadata = {}) {
    return message_of<CheckpointError>([&] { save_safetensors(dir / "t", tensors, metadata); });
  };
  EXPECT_THAT(problem({{"z", torch::zeros({1}, torch::kComplexFloat)}}), HasSubstr("the tensor 'z'"));
  EXPECT_THAT(problem({{"u", torch::Tensor()}}), HasSubstr("the tensor 'u'"));
  EXPECT_THAT(problem({{"s", torch::zeros({2, 2}).to_sparse()}}), HasSubstr("the tensor 's'"));
  EXPECT_THAT(problem({{"__metadata__", torch::zeros({1})}}), HasSubstr("the tensor '__metadata__'"));
  EXPECT_THAT(problem({{"\xff", torch::zeros({1})}}), HasSubstr("'\\xff' is not valid UTF-8"));
  EXPECT_THAT(problem({}, {{"k", "\xff"}}), HasSubstr("'\\xff' is not valid UTF-8"));
  EXPECT_FALSE(fs::exists(dir / "t"));
}

// --- the reference implementation ---

TEST(Safetensors, AgreesWithTheReferenceImplementation) {
  const char* const named = std::getenv("ZOO_PYTHON");
  const std::string python = named ? named : ".venv/bin/python3";
  const std::string probe = python + " -c 'import safetensors.torch' 2>/dev/null";
  if (std::system(probe.c_str()) != 0) GTEST_SKIP() << "no Python with safetensors and torch: " << python;
  const TempDir dir;
  auto tensors = one_of_each();
  save_safetensors(dir / "ours", tensors, {{"format", "pt"}});
  // Reads our file, checks it, and writes the same values to another file.
  const auto script = dir.write("check.py", R"(
import sys, torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
folder = sys.argv[1]
tensors = load_file(folder + "/ours")
with safe_open(folder + "/ours", "pt") as f:
    assert f.metadata() == {"format": "pt"}, f.metadata()
kinds = dict(f64=torch.float64, f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16, i64=torch.int64,
             i32=torch.int32, i16=torch.int16, i8=torch.int8, u8=torch.uint8, bool=torch.bool)
assert len(tensors) == len(kinds) + 3, list(tensors)
for name, kind in kinds.items():
    assert tensors[name].dtype == kind and tensors[name].shape == (3, 5)
assert torch.equal(tensors["f16"], tensors["f32"].half()) and torch.equal(tensors["bool"], tensors["f32"] > 0)
assert tensors["scalar"].shape == () and tensors["scalar"].item() == 7.5 and tensors["empty"].shape == (0, 4)
save_file(tensors, folder + "/theirs", metadata={"format": "pt"})
)");
  ASSERT_EQ(std::system((python + " " + script.string() + " " + dir.path().string()).c_str()), 0);
  EXPECT_EQ(read_file(dir / "theirs"), read_file(dir / "ours"));
  const SafetensorsFile theirs(dir / "theirs");
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same(theirs.tensor(name), tensor)) << name;
}

}  // namespace
}  // namespace zoo::testing
