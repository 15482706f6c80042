// `extends:` of configurations.

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/config/config_file.h"
#include "tests/io/sample_config.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  EXPECT_THAT(
      problem_in("typo.yaml"),
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
  dir_.write("base.yaml", "training: {seed: 7}\n");
  std::filesystem::create_symlink("base.yaml", dir_ / "link.yaml");
  dir_.write("child.yaml", "extends: link.yaml\n");
  EXPECT_EQ(read("child.yaml").training.seed, 7);
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
  dir_.write("40.yaml", "training: {seed: 7}\n");
  EXPECT_EQ(read("0.yaml").training.seed, 7);
}

}  // namespace
}  // namespace zoo::testing
