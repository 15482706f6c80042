#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/sample_config.h"
#include "tests/support/errors.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

TEST(ConfigDump, WritesEveryKey) {
  EXPECT_EQ(dump_config(SampleConfig{}), R"(name: run
files: []
model:
  d_model: 512
  n_layers: 6
  d_ff: null
  norm: layer_norm
  precision: null
  bias: true
  dropout: 0.1
  scaling: null
training:
  seed: 0
  lr: 0.001
  betas: [0.9, 0.999]
  milestones: []
  batch_size: 32
  nothing: {}
)");
}

TEST(ConfigDump, ReadsBackTheSame) {
  SampleConfig c;
  c.files = {"a", "b: c", "- d", "", "[e]", "f, g"};
  c.model.d_ff = 17;
  c.model.norm = Norm::kNone;
  c.model.precision = Precision::kAuto;  // not the same as absent
  c.model.bias = false;
  c.model.scaling = ScalingConfig{3, 4};
  c.training.seed = std::numeric_limits<int64_t>::min();
  c.training.milestones = {1, -2, std::numeric_limits<int64_t>::max()};
  c.training.batch_size = {};  // auto
  const std::string dumped = dump_config(c);
  EXPECT_EQ(read_sample(dumped), c) << dumped;
  EXPECT_EQ(dump_config(read_sample(dumped)), dumped);
}

TEST(ConfigDump, StringsReadBackTheSame) {
  const std::vector<std::string> strings = {"",
                                            " ",
                                            "a b",
                                            " lead",
                                            "trail ",
                                            "line\nbreak",
                                            "cr\rlf\r\n",
                                            "tab\t",
                                            "#no comment",
                                            "a #b",
                                            "key: value",
                                            "a:b",
                                            "null",
                                            "~",
                                            "true",
                                            "False",
                                            "yes",
                                            "no",
                                            "on",
                                            "y",
                                            "auto",
                                            "12",
                                            "-1.5e3",
                                            "0x10",
                                            ".inf",
                                            ".nan",
                                            "nan",
                                            "1:30",
                                            "2024-01-01",
                                            "'single'",
                                            "\"double\"",
                                            "back\\slash",
                                            "\\n",
                                            "*alias",
                                            "&anchor",
                                            "!tag",
                                            "%percent",
                                            "@at",
                                            "`tick",
                                            "|",
                                            ">",
                                            "-",
                                            "- a",
                                            "?",
                                            ":",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            ",",
                                            "---",
                                            "...",
                                            "<<",
                                            "=",
                                            "Übergröße",
                                            "日本",
                                            "😀",
                                            "\x01\x04\x7f",
                                            "\xC2\x85",
                                            "\xE2\x80\xA8",
                                            "\xEF\xBB\xBF",
                                            "../models/gpt2.yaml",
                                            "/abs/path",
                                            std::string("nul\0l", 5),
                                            std::string(3000, 'x')};
  SampleConfig c;
  for (const auto& text : strings) {
    c.name = text;
    EXPECT_EQ(read_sample(dump_config(c)).name, text);
  }
  c.name = "x";
  c.files = strings;
  EXPECT_EQ(read_sample(dump_config(c)), c);
}

TEST(ConfigDump, DoublesReadBackToTheLastBit) {
  std::vector<double> values = {0.0,
                                -0.0,
                                1,
                                0.1,
                                1e-5,
                                1e20,
                                123456789012345680.0,
                                5e-324,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::min()};
  std::mt19937_64 bits(7);
  while (values.size() < 2000) {
    const double value = std::bit_cast<double>(bits());
    if (std::isfinite(value)) values.push_back(value);
  }
  TrainingConfig c;
  for (const double value : values) {
    c.betas = {value};
    const std::string dumped = dump_config(c);
    // Limits would refuse most of these, so the text itself is read back.
    const size_t open = dumped.find('['), close = dumped.find(']');
    const std::string text = dumped.substr(open + 1, close - open - 1);
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)), std::bit_cast<uint64_t>(value))
        << text;
    EXPECT_NE(text.find('.'), std::string::npos) << text << " is a string or an integer to some readers";
  }
}

TEST(ConfigDump, RefusesWhatCannotBeReadBack) {
  SampleConfig c;
  c.training.lr = std::numeric_limits<double>::infinity();
  EXPECT_THROW(dump_config(c), std::logic_error);
  c.training.lr = 1;
  c.name = "\xff";
  EXPECT_THAT(message_of<ConfigError>([&] { dump_config(c); }), HasSubstr("'\\xff' is not valid UTF-8"));
}

TEST(ConfigReference, ExplainsEveryKey) {
  EXPECT_EQ(config_reference<SampleConfig>(), R"(name: run  # Name of the run. (string)
files: []  # Corpora. (list of strings)

model:     # What is trained.
  d_model: 512      # Width of the residual stream. (integer, >= 1)
  n_layers: 6       # Number of layers. (integer, between 1 and 1000)
  d_ff: null        # Width of the feed-forward layer; if absent, four times d_model. Größe: (integer, >= 1,
                    # optional)
  norm: layer_norm  # Normalisation. (one of layer_norm, rms_norm, none)
  precision: null   # Number format. (one of auto, fp32, optional)
  bias: true        # Whether linear layers have a bias. (true or false)
  dropout: 0.1      # Probability of dropping. (number, between 0 and 1)
  scaling: null     # Stretching of the positions. (group, optional)
    # factor: 8.0     # How much longer. (number, > 1 and <= 64)
    # original: null  # Length before. (integer, optional)

training:  # How it is trained.
  seed: 0              # Seed of everything. (integer)
  lr: 0.001            # Peak learning rate. (number, > 0)
  betas: [0.9, 0.999]  # Decay rates. (list of numbers, between 0 and 1)
  milestones: []       # Steps at which something happens. (list of integers)
  batch_size: 32       # Sequences. (integer, >= 1, or auto)
  nothing:             # A group without keys.
)");
}

TEST(ConfigReference, ShowsAutoWhereItIsTheDefault) {
  SampleConfig c;
  c.training.batch_size = {};
  EXPECT_THAT(config_reference(c),
              HasSubstr("\n  batch_size: auto     # Sequences. (integer, >= 1, or auto)\n"));
}

TEST(ConfigReference, IsAValidFileOfDefaults) {
  EXPECT_EQ(read_sample(config_reference<SampleConfig>()), SampleConfig{});
}

}  // namespace
}  // namespace zoo::testing
