#include "io/config/config_file.h"

#include <cctype>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/sample_config.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string problem(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  return message_of<ConfigError>([&] { read_sample(yaml, overrides); });
}

// --- values ---

TEST(ConfigRead, EmptyFilesKeepEveryDefault) {
  EXPECT_EQ(read_sample(""), SampleConfig{});
  EXPECT_EQ(read_sample("# only a comment\n"), SampleConfig{});
  EXPECT_EQ(read_sample("model:\ntraining: {}\n"), SampleConfig{});
}

TEST(ConfigRead, ReadsEveryKind) {
  const auto c = read_sample(R"(
name: "two words"
files: [a.txt, 'b c.txt', 12]
model:
  d_model: 64
  d_ff: 100
  norm: rms_norm
  precision: fp32
  bias: false
  dropout: 0
  scaling: {factor: 2.5, original: 4096}
training: {seed: -3, lr: 3e-4, betas: [0.5, 1], milestones: [1, 2e3]}
)");
  EXPECT_EQ(c.name, "two words");
  EXPECT_THAT(c.files, ElementsAre("a.txt", "b c.txt", "12"));
  EXPECT_EQ(c.model.d_model, 64);
  EXPECT_EQ(c.model.n_layers, 6);
  EXPECT_EQ(c.model.d_ff, 100);
  EXPECT_EQ(c.model.norm, Norm::kRmsNorm);
  EXPECT_EQ(c.model.precision, Precision::kFp32);
  EXPECT_FALSE(c.model.bias);
  EXPECT_EQ(c.model.dropout, 0);
  EXPECT_EQ(c.model.scaling, (ScalingConfig{2.5, 4096}));
  EXPECT_EQ(c.training.seed, -3);
  EXPECT_EQ(c.training.lr, 3e-4);
  EXPECT_THAT(c.training.betas, ElementsAre(0.5, 1.0));
  EXPECT_THAT(c.training.milestones, ElementsAre(1, 2000));
}

TEST(ConfigRead, IntegersInScientificNotation) {
  EXPECT_EQ(read_sample("training: {seed: 1e6}").training.seed, 1000000);
  EXPECT_EQ(read_sample("training: {seed: +2.5e1}").training.seed, 25);
  EXPECT_EQ(read_sample("training: {seed: -9223372036854775808}").training.seed,
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(read_sample("training: {seed: 9223372036854775807}").training.seed,
            std::numeric_limits<int64_t>::max());
}

TEST(ConfigRead, AScalarIsAListOfOneString) {
  EXPECT_THAT(read_sample("files: a.txt").files, ElementsAre("a.txt"));
}

TEST(ConfigRead, NullAndAutoAreAbsentOptionals) {
  for (const char* word : {"null", "~", "auto", ""}) {
    const auto c = read_sample(std::string("model: {precision: ") + word + ", d_ff: " + word + "}");
    EXPECT_FALSE(c.model.precision) << word;
    EXPECT_FALSE(c.model.d_ff) << word;
  }
  EXPECT_EQ(read_sample("model: {precision: \"auto\"}").model.precision, Precision::kAuto);
}

TEST(ConfigRead, AWordInsteadOfANumber) {
  EXPECT_TRUE(read_sample("training: {batch_size: auto}").training.batch_size.is_auto());
  EXPECT_TRUE(
      read_sample("training: {batch_size: 8}", {"training.batch_size=auto"}).training.batch_size.is_auto());
  EXPECT_EQ(read_sample("training: {batch_size: auto}", {"training.batch_size=8"}).training.batch_size, 8);
  EXPECT_EQ(dump_config(read_sample("training: {batch_size: auto}")).find("batch_size: \""),
            std::string::npos);
  EXPECT_THAT(problem("training: {batch_size: aut}"),
              EndsWith("training.batch_size must be an integer or auto, not 'aut'"));
  EXPECT_THAT(problem("training: {batch_size: null}"),
              EndsWith("training.batch_size must be an integer or auto, not null"));
  EXPECT_THAT(problem("training: {batch_size: \"auto\"}"), HasSubstr("must be an integer or auto"));
  EXPECT_THAT(problem("training: {batch_size: 0}"), EndsWith("training.batch_size must be >= 1, not 0"));
  EXPECT_THAT(problem("training: {seed: auto}"), EndsWith("training.seed must be an integer, not 'auto'"));
}

TEST(ConfigRead, OptionalGroups) {
  EXPECT_FALSE(read_sample("model: {scaling: null}").model.scaling);
  EXPECT_EQ(read_sample("model: {scaling: {}}").model.scaling, ScalingConfig{});
  EXPECT_THAT(problem("model: {scaling: {facto: 2}}"),
              HasSubstr("unknown key 'model.scaling.facto'; did you mean 'factor'?"));
}

TEST(ConfigRead, WordsOfYaml11AreStrings) {
  EXPECT_EQ(read_sample("name: no").name, "no");
  EXPECT_EQ(read_sample("name: 2024-01-01").name, "2024-01-01");
  EXPECT_THAT(problem("model: {bias: yes}"), EndsWith("model.bias must be true or false, not 'yes'"));
}

TEST(ConfigRead, AnchorsAndByteOrderMark) {
  const auto c =
      read_sample("\xEF\xBB\xBFtraining: {betas: &b [0.1], milestones: []}\nfiles: &f [x]\nname: &n abc\n");
  EXPECT_THAT(c.training.betas, ElementsAre(0.1));
  EXPECT_THAT(read_sample("files: [&x one, *x, *x]").files, ElementsAre("one", "one", "one"));
}

// --- errors: one line with the place, the problem and a remedy ---

struct Case {
  const char* yaml;
  const char* expected;
};
/// Names the test after the letters and digits of its YAML: names must differ and be valid in CMake's lists.
void PrintTo(const Case& one, std::ostream* out) {
  std::string name;
  for (const char* c = one.yaml; *c; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  *out << name;
}

class ConfigProblem : public ::testing::TestWithParam<Case> {};

TEST_P(ConfigProblem, IsSaidInOneLine) { EXPECT_EQ(problem(GetParam().yaml), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigProblem,
    ::testing::Values(
        Case{"name: x\nmodel:\n  n_layer: 4\n",
             "a.yaml:3:3: unknown key 'model.n_layer'; did you mean 'n_layers'?"},
        Case{"model: {layers: 4}", "a.yaml:1:9: unknown key 'model.layers'; did you mean 'n_layers'?"},
        Case{"model: {seed: 4}", "a.yaml:1:9: unknown key 'model.seed'; did you mean 'training.seed'?"},
        Case{"n_layers: 4", "a.yaml:1:1: unknown key 'n_layers'; did you mean 'model.n_layers'?"},
        Case{"model: {milestone: 4}",
             "a.yaml:1:9: unknown key 'model.milestone'; did you mean 'training.milestones'?"},
        Case{"modle: {}", "a.yaml:1:1: unknown key 'modle'; did you mean 'model'?"},
        Case{"nmae: x\nmodle: {}", "a.yaml:1:1: unknown key 'nmae'; did you mean 'name'?"},
        Case{"zzzzzz: 1", "a.yaml:1:1: unknown key 'zzzzzz'; known here: files, model, name, training"},
        Case{"model.n_layers: 1",
             "a.yaml:1:1: unknown key 'model.n_layers'; in a file, write groups as nested keys, not with "
             "dots"},
        Case{"training: {nothing: {what: 1}}",
             "a.yaml:1:22: unknown key 'training.nothing.what'; 'zoo config' lists every key"},
        Case{"name: a\nname: b", "a.yaml:2:1: duplicate key 'name' (first set in line 1)"},
        Case{"name: \"ä\"   \n\"öö\": {ü: {}, ü: {}}",
             "a.yaml:2:15: duplicate key 'ü' (first set in line 2)"}));

INSTANTIATE_TEST_SUITE_P(
    Types, ConfigProblem,
    ::testing::Values(
        Case{"model:\n  d_model: abc", "a.yaml:2:12: model.d_model must be an integer, not 'abc'"},
        Case{"model: {d_model: \"64\"}",
             "a.yaml:1:18: model.d_model must be an integer, not the string \"64\""},
        Case{"model: {d_model: 1.5}", "a.yaml:1:18: model.d_model must be an integer, not '1.5'"},
        Case{"model: {d_model: 10_000}", "a.yaml:1:18: model.d_model must be an integer, not '10_000'"},
        Case{"model: {d_model: [1]}", "a.yaml:1:18: model.d_model must be an integer, not a list"},
        Case{"model: {d_model: {}}", "a.yaml:1:18: model.d_model must be an integer, not a group of keys"},
        Case{"model:\n  d_model:\n\nname: x", "a.yaml:2:3: model.d_model must be an integer, not null"},
        Case{"training: {seed: 9223372036854775808}",
             "a.yaml:1:18: training.seed must be an integer of at most 64 bits, not '9223372036854775808'"},
        Case{
            "training: {seed: 1e300}",
            "a.yaml:1:18: training.seed must be an integer written in digits, or a smaller one, not '1e300'"},
        Case{"training: {seed: .inf}", "a.yaml:1:18: training.seed must be an integer, not '.inf'"},
        Case{"training: {lr: fast}", "a.yaml:1:16: training.lr must be a number, not 'fast'"},
        Case{"training: {lr: .nan}", "a.yaml:1:16: training.lr must be a finite number, not '.nan'"},
        Case{"training: {lr: -.Inf}", "a.yaml:1:16: training.lr must be a finite number, not '-.Inf'"},
        Case{"training: {lr: inf}", "a.yaml:1:16: training.lr must be a finite number, not 'inf'"},
        Case{"training: {lr: 1e999}",
             "a.yaml:1:16: training.lr must be a number that a double can hold, not '1e999'"},
        Case{"training: {lr: +-1}", "a.yaml:1:16: training.lr must be a number, not '+-1'"},
        Case{"training: {lr: '1'}", "a.yaml:1:16: training.lr must be a number, not the string \"1\""},
        Case{"training: {lr: null}", "a.yaml:1:12: training.lr must be a number, not null"},
        Case{"training: {betas: 0.5}", "a.yaml:1:19: training.betas must be a list of numbers, not '0.5'"},
        Case{"training: {betas: [0.5, x]}", "a.yaml:1:25: training.betas must be a number, not 'x'"},
        Case{"training: {milestones: 5}",
             "a.yaml:1:24: training.milestones must be a list of integers, not '5'"},
        Case{"files: [a, [b]]", "a.yaml:1:12: files must be a list of strings, not a list"},
        Case{"files: null", "a.yaml:1:1: files must be a list of strings, not null"},
        Case{"name: [a]", "a.yaml:1:7: name must be a string, not a list"},
        Case{"model: large", "a.yaml:1:8: model must be a group of keys, not 'large'"},
        Case{"model: {scaling: 2}", "a.yaml:1:18: model.scaling must be a group of keys, not '2'"},
        Case{"model: {bias: 1}", "a.yaml:1:15: model.bias must be true or false, not '1'"},
        Case{"model: {bias: \"true\"}",
             "a.yaml:1:15: model.bias must be true or false, not the string \"true\""},
        Case{"model: {norm: layernorm}",
             "a.yaml:1:15: model.norm must be one of layer_norm, rms_norm, none, not 'layernorm'; "
             "did you mean 'layer_norm'?"},
        Case{"model: {norm: batch}",
             "a.yaml:1:15: model.norm must be one of layer_norm, rms_norm, none, not 'batch'"},
        Case{"model: {norm: [none]}",
             "a.yaml:1:15: model.norm must be one of layer_norm, rms_norm, none, not a list"}));

INSTANTIATE_TEST_SUITE_P(
    Ranges, ConfigProblem,
    ::testing::Values(
        Case{"training:\n  lr: -1", "a.yaml:2:7: training.lr must be > 0, not -1"},
        Case{"training: {lr: 0.0}", "a.yaml:1:16: training.lr must be > 0, not 0.0"},
        Case{"model: {d_model: 0}", "a.yaml:1:18: model.d_model must be >= 1, not 0"},
        Case{"model: {d_ff: 0}", "a.yaml:1:15: model.d_ff must be >= 1, not 0"},
        Case{"model: {dropout: 1.5}", "a.yaml:1:18: model.dropout must be between 0 and 1, not 1.5"},
        Case{"model: {scaling: {factor: 1}}",
             "a.yaml:1:27: model.scaling.factor must be > 1 and <= 64, not 1"},
        Case{"training: {betas: [0.9, 2]}", "a.yaml:1:25: training.betas must be between 0 and 1, not 2"}));

INSTANTIATE_TEST_SUITE_P(
    Yaml, ConfigProblem,
    ::testing::Values(
        Case{"just a word", "a.yaml:1:1: a configuration is a group of keys at the top, not 'just a word'"},
        Case{"- a\n- b", "a.yaml:1:1: a configuration is a group of keys at the top, not a list"},
        Case{"name: \"\xff\"", "a.yaml:1:8: not valid UTF-8; save the file as UTF-8"},
        Case{"name: ok\nfiles: [ä\xc3]", "a.yaml:2:10: not valid UTF-8; save the file as UTF-8"},
        Case{"name: a\x04\nmodel: {}", "a.yaml:1:8: a control character, which YAML does not allow"},
        Case{"name: a\n---\nname: b", "a.yaml:2:1: a second YAML document starts here; keep one per file"},
        Case{"[a]: b",
             "a.yaml:1:1: a key must be a word, not a list or a group; is a closing bracket missing?"},
        Case{"~: b", "a.yaml:1:1: a key must be a word"},
        Case{"name: !secret x", "a.yaml:1:7: the YAML tag '!secret' means nothing here; remove it"},
        Case{"files: &a [x, *a]", "a.yaml:1:15: an alias must not be inside the value that it refers to"}));

TEST(ConfigProblem, SyntaxErrorsHaveAPlace) {
  EXPECT_THAT(problem("name: x\nmodel: {d_model: 1\n"), StartsWith("a.yaml:3:1: not valid YAML: "));
  EXPECT_THAT(problem("name: x\n  model: 1\n"), StartsWith("a.yaml:2:8: not valid YAML: "));
  EXPECT_THAT(problem("files: [*nowhere]\n"), StartsWith("a.yaml:1:9: not valid YAML: "));
  EXPECT_THAT(problem("files: [a\nname: b\n"), StartsWith("a.yaml:"));
}

TEST(ConfigProblem, OpenQuotesSwallowNothing) {
  for (const char* yaml :
       {"name: 'open\n", "name: \"open\nmodel: {}\n", "name: 'it''s\n", "name: \"a\\\"\n"}) {
    EXPECT_EQ(problem(yaml), "a.yaml:1:7: the quote that opens here is never closed") << yaml;
  }
  EXPECT_EQ(problem("name: &a !!str 'open\n"), "a.yaml:1:7: the quote that opens here is never closed");
  EXPECT_EQ(read_sample("name: 'it''s'").name, "it's");
  EXPECT_EQ(read_sample("name: &a !!str '12'").name, "12");
  EXPECT_EQ(read_sample("name: !!str 'two\n  lines'").name, "two lines");
}

TEST(ConfigProblem, LongAndManyLineValuesAreCut) {
  const std::string message = problem("model: {d_model: \"a\\nb" + std::string(5000, 'x') + "\"}");
  EXPECT_LT(message.size(), 200u);
  EXPECT_THAT(message, HasSubstr("a\\nbxxx"));
}

// --- hostile files ---

TEST(HostileConfig, DeepNesting) {
  for (const char* open : {"[", "{a: ", "{? "}) {
    std::string yaml = "name: ";
    for (int i = 0; i < 100000; ++i) yaml += open;
    EXPECT_THAT(problem(yaml), HasSubstr("a.yaml:1:")) << open;
  }
  EXPECT_THAT(problem("name: " + std::string(100, '[') + std::string(100, ']')),
              EndsWith("nested deeper than 64 levels"));
  std::string indented;
  for (size_t i = 0; i < 500; ++i) indented += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(problem(indented), EndsWith("nested deeper than 64 levels"));
}

TEST(HostileConfig, BillionLaughs) {
  std::string yaml = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 10; ++i) {
    yaml += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) yaml += fmt::format("*a{},", i - 1);
    yaml += "]\n";
  }
  EXPECT_THAT(problem(yaml), HasSubstr("more than 100000 values"));
  // The same with one long text, and with deep nesting.
  std::string texts = fmt::format("a: &a {:x>100000}\nb: [", "");
  for (int i = 0; i < 100000; ++i) texts += "*a,";
  EXPECT_THAT(problem(texts + "]"), HasSubstr("more than 100000 values"));
  std::string deep = "a0: &a0 []\n";
  for (int i = 1; i < 100; ++i) deep += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_THAT(problem(deep), EndsWith("nested deeper than 64 levels"));
}

TEST(HostileConfig, ManyValuesAndLargeFiles) {
  std::string list = "files: [";
  for (int i = 0; i < 100001; ++i) list += "a,";
  EXPECT_THAT(problem(list + "]"), HasSubstr("more than 100000 values"));
  EXPECT_THAT(problem("#" + std::string(5 << 20, ' ')), HasSubstr("larger than 4 MiB"));
  const TempDir dir;
  std::string large = "betas: [0", many = "extends: [base.yaml";
  for (int i = 0; i < 90'000; ++i) large += ", 0";
  for (int i = 0; i < 1000; ++i) many += ", base.yaml";
  dir.write("base.yaml", large + "]\n");
  EXPECT_THAT(message_of<ConfigError>([&] { ConfigFile::load(dir.write("many.yaml", many + "]\n")); }),
              HasSubstr("extends: the files have more than 1000000 values together"));
  EXPECT_THAT(problem(std::string(1000, 'k') + ": 1"),
              AllOf(StartsWith("a.yaml:1:1: unknown key 'kkk"), HasSubstr("…")));
  EXPECT_THAT(problem(std::string(300000, 'k') + ": 1"), StartsWith("a.yaml:1:300001: not valid YAML: "));
}

TEST(HostileConfig, EveryPrefixAndByteFlipIsReadOrRefused) {
  const std::string good =
      "name: \"x\\ty\"\nfiles: [a, 'b', *c]\nmodel: &c {d_model: 12, norm: none}\ntraining:\n  lr: 1e-3 # "
      "c\n";
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x08, 0x20, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      for (const auto& text : {bad, good.substr(0, i)}) {
        try {
          read_sample(text);
        } catch (const ConfigError& error) {
          EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        }
      }
    }
  }
}

// --- --set ---

TEST(Overrides, WinOverTheFile) {
  const auto c =
      read_sample("model: {d_model: 8}\nname: a",
                  {"model.d_model=16", "name=b=c", "files=[x, y]", "model.scaling.factor=2",
                   "training={seed: 5}", "training.lr=1e-2", "model.d_model=32", "model.precision="});
  EXPECT_EQ(c.model.d_model, 32);
  EXPECT_EQ(c.name, "b=c");
  EXPECT_THAT(c.files, ElementsAre("x", "y"));
  EXPECT_EQ(c.model.scaling, (ScalingConfig{2, std::nullopt}));
  EXPECT_EQ(c.training.seed, 5);
  EXPECT_EQ(c.training.lr, 1e-2);
  EXPECT_FALSE(c.model.precision);
}

TEST(Overrides, AreCheckedLikeTheFile) {
  const auto set = [](const char* text) { return problem("name: a", {text}); };
  EXPECT_EQ(set("model.n_layer=4"),
            "--set model.n_layer=4: unknown key 'model.n_layer'; did you mean 'model.n_layers'?");
  EXPECT_EQ(set("lr=4"), "--set lr=4: unknown key 'lr'; did you mean 'training.lr'?");
  EXPECT_EQ(set("model.d_model=abc"), "--set model.d_model=abc: model.d_model must be an integer, not 'abc'");
  EXPECT_EQ(set("training.lr=-1"), "--set training.lr=-1: training.lr must be > 0, not -1");
  EXPECT_EQ(set("model=4"), "--set model=4: model must be a group of keys, not '4'");
  EXPECT_EQ(set("name.x=4"), "--set name.x=4: name must be a string, not a group of keys");
  EXPECT_EQ(set("name"), "--set name: write it as KEY=VALUE, such as model.n_layers=4");
  EXPECT_THAT(set("=4"), HasSubstr("--set =4: the key must be names"));
  EXPECT_THAT(set("a..b=4"), HasSubstr("must be names joined by dots"));
  EXPECT_THAT(set("files=[a"), EndsWith("is a closing bracket missing?"));
  EXPECT_THAT(set("name=a\xff"), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(set("model={d_model: 1, d_model: 2}"), HasSubstr("duplicate key 'd_model' (first set before)"));
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_THAT(set((deep + "=1").c_str()), EndsWith("nested deeper than 64 levels"));
}

// --- checks across keys ---

TEST(ConfigFail, NamesTheNearestPlace) {
  const auto file =
      ConfigFile::parse("name: a\nmodel:\n  d_model: 7\n  d_ff:\n", "a.yaml", {"training.lr=2"});
  const auto failure = [&](const char* key) {
    return message_of<ConfigError>([&] { file.fail(key, "is odd"); });
  };
  EXPECT_EQ(failure("model.d_model"), "a.yaml:3:12: model.d_model is odd");
  EXPECT_EQ(failure("model.d_ff"), "a.yaml:4:3: model.d_ff is odd");
  EXPECT_EQ(failure("model.n_layers"), "a.yaml:2:1: model.n_layers is odd");
  EXPECT_EQ(failure("training.lr"), "--set training.lr=2: training.lr is odd");
  EXPECT_EQ(failure("data.train"), "a.yaml: data.train is odd");
  EXPECT_EQ(message_of<ConfigError>([&] { file.fail("", "nothing fits"); }), "a.yaml: nothing fits");
  EXPECT_EQ(message_of<ConfigError>([&] { file.fail("name", "name is odd"); }), "a.yaml:1:7: name is odd");
}

TEST(ConfigFail, SetsTellsWhatWasWritten) {
  const auto file =
      ConfigFile::parse("name: a\nmodel: {d_model: 7, d_ff: null}", "a.yaml", {"training.lr=2"});
  EXPECT_TRUE(file.sets("name"));
  EXPECT_TRUE(file.sets("model"));
  EXPECT_TRUE(file.sets("model.d_model"));
  EXPECT_TRUE(file.sets("training.lr"));
  EXPECT_FALSE(file.sets("model.d_ff"));
  EXPECT_FALSE(file.sets("model.n_layers"));
  EXPECT_FALSE(file.sets("name.x"));
  EXPECT_EQ(file.name(), "a.yaml");
}

}  // namespace
}  // namespace zoo::testing
