#include "io/config/config_file.h"

#include <sys/stat.h>

#include <cctype>
#include <filesystem>
#include <limits>
#include <typeinfo>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/config/registry.h"
#include "tests/io/sample_config.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
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

// --- extends ---

class Extends : public ::testing::Test {
 protected:
  SampleConfig read(const std::string& name) {
    SampleConfig config;
    ConfigFile::load(dir_ / name).read(config);
    return config;
  }
  std::string problem_in(const std::string& name) {
    std::string message = message_of<ConfigError>([&] { read(name); });
    const std::string prefix = dir_.path().string() + "/";
    for (size_t at; (at = message.find(prefix)) != message.npos;) message.erase(at, prefix.size());
    return message;
  }
  TempDir dir_;
  ScopedEnvironment root_{"ZOO_DATA", (dir_ / "data").string()};
};

TEST_F(Extends, MergesGroupsAndReplacesTheRest) {
  dir_.write("models/base.yaml",
             "name: base\nfiles: [a, b]\nmodel: {d_model: 8, n_layers: 2, scaling: {factor: 3}}\n");
  dir_.write("tasks/child.yaml",
             "extends: ../models/base.yaml\nfiles: [c]\nmodel: {n_layers: 3, scaling: {original: 5}}\n");
  const auto c = read("tasks/child.yaml");
  EXPECT_EQ(c.name, SampleConfig().name) << "the name of another file's run";
  EXPECT_THAT(c.files, ElementsAre("c"));
  EXPECT_EQ(c.model.d_model, 8);
  EXPECT_EQ(c.model.n_layers, 3);
  EXPECT_EQ(c.model.scaling, (ScalingConfig{3, 5}));
}

TEST_F(Extends, NullRemovesWhatABaseSet) {
  dir_.write("base.yaml", "model: {d_ff: 9, scaling: {factor: 3}}\n");
  dir_.write("child.yaml", "extends: base.yaml\nmodel: {d_ff: null, scaling: null}\n");
  EXPECT_EQ(read("child.yaml"), SampleConfig{});
}

TEST_F(Extends, ListsOfFilesInOrderAndChains) {
  dir_.write("a.yaml", "name: a\ntraining: {seed: 1, lr: 1}\n");
  dir_.write("b.yaml", "extends: a.yaml\ntraining: {seed: 2}\n");
  dir_.write("c.yaml", "training: {milestones: [3]}\nname: c\n");
  dir_.write("d.yaml", "extends: [b.yaml, c.yaml, a.yaml]\nmodel: {d_model: 1}\n");
  const auto d = read("d.yaml");
  EXPECT_EQ(d.training.seed, 1);  // of the last one of the list
  EXPECT_THAT(d.training.milestones, ElementsAre(3));
}

TEST_F(Extends, ErrorsNameTheFileThatSaysIt) {
  dir_.write("base.yaml", "model:\n  d_model: x\n");
  dir_.write("child.yaml", "extends: base.yaml\n");
  EXPECT_EQ(problem_in("child.yaml"), "base.yaml:2:12: model.d_model must be an integer, not 'x'");
  dir_.write("typo.yaml", "extends: basse.yaml\n");
  EXPECT_THAT(problem_in("typo.yaml"),
              StartsWith(fmt::format("typo.yaml:1:10: extends: cannot read 'basse.yaml': No such file or directory; "
                                     "looked for it beside the configuration ({}), in the working directory ({})",
                                     dir_.path().string(), std::filesystem::current_path().string())));
  EXPECT_EQ(problem_in("nowhere.yaml"), "cannot read 'nowhere.yaml': No such file or directory");
  EXPECT_EQ(problem_in("."), "cannot read '.': Is a directory");
  dir_.write("number.yaml", "extends: [[base.yaml]]\n");
  EXPECT_EQ(problem_in("number.yaml"),
            "number.yaml:1:11: extends must be a file or a list of files, not a list");
  dir_.write("null.yaml", "extends:\n");
  EXPECT_EQ(problem_in("null.yaml"), "null.yaml:1:1: extends must be a file or a list of files, not null");
}

TEST_F(Extends, LooksBesideTheFileThenInTheWorkingDirectoryThenInTheDataRoot) {
  dir_.write("here/other.yaml", "");
  const WorkingDirectory here(dir_ / "here");
  dir_.write("study/child.yaml", "extends: base.yaml\n");
  dir_.write("data/base.yaml", "model: {d_model: 3}\n");
  EXPECT_EQ(read("study/child.yaml").model.d_model, 3);
  dir_.write("here/base.yaml", "model: {d_model: 2}\n");
  EXPECT_EQ(read("study/child.yaml").model.d_model, 2);
  dir_.write("study/base.yaml", "model: {d_model: 1}\n");
  EXPECT_EQ(read("study/child.yaml").model.d_model, 1);
}

// Another file names them, so they may be anything.
TEST_F(Extends, ErrorsDoNotQuoteWhatIsNoConfiguration) {
  const auto problem_with = [&](const std::string& content) {
    dir_.write("odd", content);
    dir_.write("child.yaml", "extends: odd\nname: child\n");
    return problem_in("child.yaml");
  };
  EXPECT_EQ(problem_with("root:x:0:0:root:/root:/bin/sh\n"),
            "odd:1:1: a configuration is a group of keys at the top");
  EXPECT_THAT(problem_with("password: secret\n"),
              AllOf(HasSubstr("odd:1:1: unknown key;"), Not(HasSubstr("pass"))));
  for (const char* content : {"secret: {a: 1, a: 2}\n", "secret: !secret x\n", "secret: [1\n", "- secret\n",
                              "secret: *secret\n", "secret: 1\nsecret: 2\n"}) {
    EXPECT_THAT(problem_with(content), AllOf(StartsWith("odd:"), Not(HasSubstr("secret")))) << content;
  }
  EXPECT_THAT(problem_with("modle: {d_model: 1}\n"), HasSubstr("unknown key 'modle'; did you mean 'model'?"));
  EXPECT_THAT(problem_with("model: {d_modle: 1}\n"), HasSubstr("unknown key 'model.d_modle'; did you mean"));
}

TEST_F(Extends, OnlyFiles) {
  dir_.write("base.yaml", "model: {d_model: 7}\n");
  std::filesystem::create_symlink("base.yaml", dir_ / "link.yaml");
  dir_.write("child.yaml", "extends: link.yaml\n");
  EXPECT_EQ(read("child.yaml").model.d_model, 7);
  ASSERT_EQ(::mkfifo((dir_ / "pipe.yaml").c_str(), 0600), 0);
  dir_.write("child.yaml", "extends: pipe.yaml\n");
  EXPECT_EQ(problem_in("child.yaml"),
            "child.yaml:1:10: extends: cannot read 'pipe.yaml': it is a pipe, not a regular file");
}

TEST_F(Extends, NotInARun) {
  const auto complete = [&](const char* name) {
    SampleConfig config;
    ConfigFile::load_complete(dir_ / name).read(config);
    return config.name;
  };
  const auto problem = [&](const char* name) { return message_of<ConfigError>([&] { complete(name); }); };
  dir_.write("base.yaml", "name: base\n");
  dir_.write("child.yaml", "name: child\nextends: base.yaml\n");
  EXPECT_EQ(complete("base.yaml"), "base");
  EXPECT_THAT(problem("child.yaml"),
              HasSubstr("child.yaml:2:1: the configuration of a run is complete and extends no other"));
  std::filesystem::create_symlink("base.yaml", dir_ / "link.yaml");
  EXPECT_THAT(problem("link.yaml"), HasSubstr("link.yaml': it is a link"));
  ASSERT_EQ(::mkfifo((dir_ / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_THAT(problem("pipe.yaml"), HasSubstr("pipe.yaml': it is a pipe"));
}

TEST_F(Extends, Circles) {
  dir_.write("a.yaml", "extends: sub/b.yaml\n");
  dir_.write("sub/b.yaml", "name: b\nextends: ../c.yaml\n");
  dir_.write("c.yaml", "extends: a.yaml\n");
  EXPECT_EQ(problem_in("a.yaml"),
            "c.yaml:1:10: files extend each other in a circle: a.yaml extends sub/b.yaml extends c.yaml "
            "extends a.yaml");
  dir_.write("self.yaml", "extends: ./self.yaml\n");
  EXPECT_THAT(problem_in("self.yaml"), HasSubstr("in a circle: self.yaml extends self.yaml"));
}

TEST_F(Extends, DiamondsAreReadOnce) {
  // Each file extends the next one twice: without a cache this takes 2^40 reads.
  for (int i = 0; i < 40; ++i) {
    const std::string next = std::to_string(i + 1) + ".yaml";
    dir_.write(std::to_string(i) + ".yaml", "extends: [" + next + ", " + next + "]\n");
  }
  dir_.write("40.yaml", "name: bottom\n");
  EXPECT_EQ(read("0.yaml").name, "bottom");
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

// --- types of a registry ---

struct WindowKeys {
  int64_t size = 256;
  std::string edge = "cut";
  std::optional<ScalingConfig> scaling = {};
  bool operator==(const WindowKeys&) const = default;
};
void describe(ConfigVisitor& v, WindowKeys& c) {
  v.field("size", c.size, "Keys on each side.", Limits::at_least(1));
  v.field("edge", c.edge, "What is beyond the ends.");
  v.field("scaling", c.scaling, "Stretching.");
}

struct MixerEntry : TypeInfo {
  int64_t n_sides = 2;
};

const Registry<MixerEntry>& mixers() {
  static const Registry<MixerEntry> types(
      "mixer",
      {{{.name = "full", .doc = "All keys."}},
       {{.name = "window", .doc = "The keys nearby.", .make_options = options_of<WindowKeys>()}, 1}});
  return types;
}

struct BlockConfig {
  Selection mixer = Selection("full");
  std::vector<Selection> layers = {Selection("full")};
};
void describe(ConfigVisitor& v, BlockConfig& c) {
  v.selection("mixer", c.mixer, mixers(), "What mixes.");
  v.selections("layers", c.layers, mixers(), "The same by layer.");
}

struct BlocksConfig {
  std::string name = "run";
  BlockConfig block;
};
void describe(ConfigVisitor& v, BlocksConfig& c) {
  v.field("name", c.name, "Name of the run.");
  v.field("block", c.block, "A part.");
}

BlocksConfig read_blocks(std::string_view yaml, const std::vector<std::string>& overrides = {},
                         BlocksConfig config = {}) {
  ConfigFile::parse(yaml, "a.yaml", overrides).read(config);
  return config;
}
Selection read_mixer(std::string_view yaml, const std::vector<std::string>& overrides = {},
                     const Selection& initial = Selection("full")) {
  return read_blocks(yaml, overrides, {.block = {.mixer = initial}}).block.mixer;
}

TEST(ConfigSelection, IsANameOrAGroupWithAType) {
  EXPECT_EQ(read_mixer("").type, "full");
  for (const char* yaml :
       {"block: {mixer: full}", "block: {mixer: {type: full}}", "block: {mixer: 'full'}"}) {
    const auto mixer = read_mixer(yaml, {}, Selection("window", WindowKeys()));
    EXPECT_TRUE(mixer == "full") << yaml;
    EXPECT_FALSE(mixer.options) << yaml;
  }
  for (const char* yaml : {"block: {mixer: window}", "block:\n  mixer:\n    type: window\n"}) {
    const auto mixer = read_mixer(yaml);
    EXPECT_EQ(mixer.type, "window") << yaml;
    EXPECT_EQ(mixer.as<WindowKeys>(), WindowKeys()) << yaml;
  }
  const auto mixer = read_mixer("block: {mixer: {size: 4, type: window, scaling: {factor: 2}}}");
  EXPECT_EQ(mixer.type, "window");
  EXPECT_EQ(mixer.as<WindowKeys>(), (WindowKeys{4, "cut", ScalingConfig{2, std::nullopt}}));
}

TEST(ConfigSelection, KeysThatTheFileDoesNotSetStayAsTheyAre) {
  const Selection initial("window", WindowKeys{.size = 7, .edge = "wrap", .scaling = {}});
  EXPECT_EQ(read_mixer("", {}, initial).as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
  EXPECT_EQ(read_mixer("block: {mixer: window}", {}, initial).as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
  EXPECT_EQ(read_mixer("block: {mixer: {type: window, size: 9}}", {}, initial).as<WindowKeys>(),
            (WindowKeys{9, "wrap", {}}));
  // A selection shares its keys with its copies, which stay as they are, too.
  EXPECT_EQ(initial.as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
}

TEST(ConfigSelection, ListsHaveOneOrMore) {
  const auto layers_of = [](std::string_view yaml) {
    std::vector<std::string> texts;
    for (const auto& layer : read_blocks(yaml).block.layers) texts.push_back(to_text(layer));
    return texts;
  };
  const std::string window = "{type: window, size: 256, edge: cut, scaling: null}",
                    narrow = "{type: window, size: 4, edge: cut, scaling: null}";
  EXPECT_THAT(layers_of(""), ElementsAre("full"));
  EXPECT_THAT(layers_of("block: {layers: window}"), ElementsAre(window));
  EXPECT_THAT(layers_of("block: {layers: {type: window, size: 4}}"), ElementsAre(narrow));
  EXPECT_THAT(layers_of("block: {layers: [full]}"), ElementsAre("full"));
  // The same type may come again, with keys of its own.
  EXPECT_THAT(layers_of("block: {layers: [{type: window, size: 4}, full, window, full, {type: window}]}"),
              ElementsAre(narrow, "full", window, "full", window));
}

TEST(ConfigSelection, ProblemsAreSaidInOneLine) {
  const auto said = [](const std::string& block, const std::vector<std::string>& overrides = {}) {
    return message_of<ConfigError>([&] { read_blocks("block: {" + block + "}", overrides); });
  };
  // Unknown types.
  EXPECT_EQ(said("mixer: windw"),
            "a.yaml:1:16: block.mixer must be one of full, window, not 'windw'; did you mean 'window'?");
  EXPECT_EQ(said("mixer: {type: windw}"),
            "a.yaml:1:23: block.mixer.type must be one of full, window, not 'windw'; did you mean 'window'?");
  EXPECT_EQ(said("mixer: convolution"),
            "a.yaml:1:16: block.mixer must be one of full, window, not 'convolution'");
  EXPECT_EQ(said("mixer: [full]"), "a.yaml:1:16: block.mixer must be one of full, window, not a list");
  EXPECT_THAT(said("mixer: null"), EndsWith("block.mixer must be one of full, window, not null"));
  EXPECT_THAT(said("layers: [full, windw]"),
              AllOf(StartsWith("a.yaml:1:24: block.layers[1] must be one of full, window, not 'windw'"),
                    EndsWith("did you mean 'window'?")));
  EXPECT_THAT(said("layers: []"), HasSubstr("block.layers must be one type or a list that is not empty"));
  // No type.
  EXPECT_EQ(said("mixer: {size: 4}"),
            "a.yaml:1:16: block.mixer has no type: add `type:` with one of full, window");
  EXPECT_THAT(said("layers: [{}]"), HasSubstr("block.layers[0] has no type"));
  EXPECT_THAT(said("", {"block.mixer.size=4"}),
              StartsWith("--set block.mixer.size=4: block.mixer has no type"));
  // Keys that the type does not have.
  EXPECT_EQ(said("mixer: {type: window, sise: 4}"),
            "a.yaml:1:31: unknown key 'sise' of the type window; did you mean 'size'?");
  EXPECT_THAT(said("mixer: {type: full, size: 4}"),
              StartsWith("a.yaml:1:29: unknown key 'size' of the type full"));
  EXPECT_THAT(said("layers: [{type: window, size: 4}, {type: full, size: 4}]"),
              StartsWith("a.yaml:1:56: unknown key 'size' of the type full"));
  EXPECT_THAT(said("mixer: {type: window, scaling: {facto: 2}}"), HasSubstr("did you mean 'factor'?"));
  EXPECT_EQ(
      said("mixer: {type: window}", {"block.mixer.sise=4"}),
      "--set block.mixer.sise=4: unknown key 'sise' of the type window; did you mean 'block.mixer.size'?");
  // Values.
  EXPECT_EQ(said("mixer: {type: window, size: x}"),
            "a.yaml:1:37: block.mixer.size must be an integer, not 'x'");
  EXPECT_EQ(said("layers: [full, {type: window, size: 0}]"),
            "a.yaml:1:45: block.layers[1].size must be >= 1, not 0");
  EXPECT_THAT(said("mixer: {type: window, scaling: {factor: 1}}"),
              HasSubstr("block.mixer.scaling.factor must be > 1 and <= 64, not 1"));
  // The keys beside a selection are still checked.
  EXPECT_THAT(said("mixer: {type: window}, mixxer: full"),
              HasSubstr("unknown key 'block.mixxer'; did you mean 'mixer'?"));
}

TEST(ConfigSelection, OverridesReachTheKeysOfTheType) {
  const std::string file = "block: {mixer: {type: window, size: 4}}";
  const auto overridden = [](const std::string& yaml, const std::vector<std::string>& overrides) {
    return to_text(read_mixer(yaml, overrides));
  };
  EXPECT_EQ(overridden(file, {"block.mixer.size=8"}), "{type: window, size: 8, edge: cut, scaling: null}");
  EXPECT_EQ(overridden(file, {"block.mixer.scaling.factor=3", "block.mixer.edge=wrap"}),
            "{type: window, size: 4, edge: wrap, scaling: {factor: 3.0, original: null}}");
  EXPECT_EQ(overridden(file, {"block.mixer=full"}), "full");
  EXPECT_EQ(overridden(file, {"block.mixer=window"}), "{type: window, size: 256, edge: cut, scaling: null}");
  EXPECT_EQ(overridden("", {"block.mixer.type=window", "block.mixer.size=8"}),
            "{type: window, size: 8, edge: cut, scaling: null}");
  EXPECT_EQ(overridden("block: {mixer: full}", {"block.mixer={type: window, size: 8}"}),
            "{type: window, size: 8, edge: cut, scaling: null}");
}

TEST(ConfigSelection, TheDumpReadsBackTheSame) {
  EXPECT_EQ(dump_config(BlocksConfig()), "name: run\nblock:\n  mixer: full\n  layers: full\n");
  BlocksConfig c;
  for (const std::string edge : {"wrap", "a, b}", "x: y # z", "null", "", "\"'\n\\"}) {
    c.block.mixer =
        Selection("window", WindowKeys{.size = 1, .edge = edge, .scaling = ScalingConfig{2.5, 7}});
    c.block.layers = {Selection("window", WindowKeys{.edge = edge}), Selection("full"),
                      Selection("window", WindowKeys{.size = 3, .scaling = ScalingConfig{}})};
    const auto dumped = dump_config(c);
    const auto again = read_blocks(dumped);
    EXPECT_EQ(dump_config(again), dumped);
    EXPECT_EQ(again.block.mixer.as<WindowKeys>(), c.block.mixer.as<WindowKeys>()) << dumped;
    ASSERT_EQ(again.block.layers.size(), 3U) << dumped;
    EXPECT_EQ(again.block.layers[0].as<WindowKeys>(), c.block.layers[0].as<WindowKeys>()) << dumped;
    EXPECT_TRUE(again.block.layers[1] == "full");
    EXPECT_EQ(again.block.layers[2].as<WindowKeys>(), c.block.layers[2].as<WindowKeys>()) << dumped;
  }
}

TEST(ConfigSelection, TheReferenceShowsTypesAndTheirKeys) {
  const auto text = config_reference<BlocksConfig>();
  EXPECT_THAT(text, HasSubstr("  mixer: full "));
  EXPECT_THAT(text, HasSubstr("# What mixes. (one of full, window)\n"));
  EXPECT_THAT(text, HasSubstr("# The same by layer. (one of full, window, or a list of them"));
  for (const char* key : {"mixer", "layers"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("  # {}: {{type: window, …}}", key)));
    EXPECT_THAT(text, ::testing::Not(HasSubstr(fmt::format("# {}: {{type: full", key))));
  }
  EXPECT_THAT(text, HasSubstr("# The keys nearby.\n"));
  // Each key of the type, commented out, with its default, meaning and limits.
  for (const char* line : {"\n    # size: 256 ", "\n    # edge: cut ", "\n    # scaling: null "})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, HasSubstr("# Keys on each side. (integer, >= 1)\n"));
  // The reference is a file with the defaults.
  EXPECT_EQ(dump_config(read_blocks(text)), dump_config(BlocksConfig()));
}

TEST(Registry, FindsSelectsAndAddsTypes) {
  EXPECT_THAT(mixers().names(), ElementsAre("full", "window"));
  EXPECT_EQ(mixers().at("window").n_sides, 1);
  EXPECT_EQ(mixers().at(Selection("full")).n_sides, 2);
  EXPECT_EQ(mixers().find("windw"), nullptr);
  EXPECT_EQ(message_of<ConfigError>([] { mixers().at("windw"); }),
            "there is no mixer 'windw'; there are: full, window");
  EXPECT_EQ(mixers().select("window").as<WindowKeys>(), WindowKeys());
  EXPECT_FALSE(mixers().select("full").options);
  EXPECT_THROW(mixers().select("windw"), ConfigError);

  EXPECT_THROW(Selection("full").as<WindowKeys>(), UsageError);
  EXPECT_THROW(Selection("window", ScalingConfig()).as<WindowKeys>(), std::bad_cast);

  Registry<MixerEntry> own("mixer", {{{.name = "full", .doc = "All keys."}}});
  const auto* const first = own.find("full");
  EXPECT_THAT(message_of<UsageError>([&] { own.add({{.name = "full", .doc = ""}}); }),
              HasSubstr("there is a mixer 'full' already"));
  for (int i = 0; i < 100; ++i) own.add({{.name = fmt::format("mixer-{}", i), .doc = ""}, i});
  EXPECT_EQ(own.find("full"), first) << "types stay where they are";
  EXPECT_EQ(own.at("mixer-99").n_sides, 99);
  EXPECT_EQ(own.infos().size(), 101U);
}

}  // namespace
}  // namespace zoo::testing
