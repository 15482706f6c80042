// Configurations found by name.

#include "io/config/find_config.h"

#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "tests/io/sample_config.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::ScopedEnvironment;
using testing::TempDir;

/// A folder of configurations that come with the program, and a folder of the user's.
class FindConfig : public ::testing::Test {
 protected:
  FindConfig() {
    dir_.write("shipped/models/gpt2.yaml", "model: {d_model: 3}\n");
    dir_.write("shipped/models/t5-v1.1.yaml", "model: {d_model: 4}\n");
    dir_.write("shipped/gpt/fortunes.yaml", "extends: ../models/gpt2.yaml\n");
  }
  std::string found(const std::string& name) const {
    return find_config(ConfigPath(name, dir_ / "own")).lexically_relative(dir_.path()).string();
  }

  TempDir dir_;
  ScopedEnvironment shipped_{"ZOO_CONFIGS", (dir_ / "shipped").string()};
};

TEST_F(FindConfig, FindsWhatComesWithTheProgramByNameOrPath) {
  for (const std::string name :
       {"t5-v1.1", "t5-v1.1.yaml", "models/t5-v1.1", "models/t5-v1.1.yaml", "configs/models/t5-v1.1.yaml"})
    EXPECT_EQ(found(name), "shipped/models/t5-v1.1.yaml") << name;
  EXPECT_EQ(found("gpt2"), "shipped/models/gpt2.yaml");
}

TEST_F(FindConfig, TakesTheUsersFileFirst) {
  dir_.write("own/gpt2.yaml", "name: own\n");
  EXPECT_EQ(found("gpt2"), "own/gpt2.yaml");
  dir_.write("own/fortunes", "name: without ending\n");
  EXPECT_EQ(found("fortunes"), "own/fortunes");
  EXPECT_EQ(found("fortunes.yaml"), "shipped/gpt/fortunes.yaml");
  fs::create_directory(dir_ / "own/t5-v1.1");  // a folder is no configuration
  EXPECT_EQ(found("t5-v1.1"), "shipped/models/t5-v1.1.yaml");
  EXPECT_EQ(find_config((dir_ / "own/gpt2").string()), dir_ / "own/gpt2.yaml");
}

TEST_F(FindConfig, SaysWhereItLooked) {
  const auto problem = [&](const std::string& name) {
    return message_of<ConfigError>([&] { find_config(ConfigPath(name, dir_ / "own")); });
  };
  const auto own = (dir_ / "own").string(), shipped = (dir_ / "shipped").string();
  EXPECT_THAT(problem("gpt-2"),
              AllOf(HasSubstr("cannot read 'gpt-2': No such file or directory; looked for it beside the "
                              "configuration (" +
                              own + "), in the working directory ("),
                    HasSubstr("data root"), EndsWith(", then in " + shipped + "; did you mean 'gpt2'?")));
  EXPECT_THAT(problem("models/none.yaml"), AllOf(HasSubstr(own), EndsWith(", then in " + shipped)));
  // These name one file only.
  for (const std::string& name : {std::string("../gpt2"), std::string("./gpt2"), (dir_ / "gpt2").string()})
    EXPECT_THAT(problem(name), AllOf(HasSubstr("No such file"), Not(HasSubstr(shipped)))) << name;
  EXPECT_THAT(problem(""), HasSubstr("cannot read ''"));
  EXPECT_THAT(message_of<ConfigError>([] { find_config("gpt-2"); }),
              HasSubstr("looked for it in the working directory ("));
  const ScopedEnvironment none("ZOO_CONFIGS", own + "/none");
  EXPECT_THAT(problem("gpt2"),
              HasSubstr("found no folder of shipped configurations, which ZOO_CONFIGS can name"));
}

TEST_F(FindConfig, IsUsedByExtends) {
  const auto width_in = [](const fs::path& path) {
    testing::SampleConfig config;
    ConfigFile::load(path).read(config);
    return config.model.d_model;
  };
  EXPECT_EQ(width_in(dir_.write("own/a.yaml", "extends: gpt2\n")), 3);
  EXPECT_EQ(width_in(dir_.write("own/b.yaml", "extends: gpt/fortunes.yaml\n")), 3);
  dir_.write("own/gpt2.yaml", "model: {d_model: 5}\n");
  EXPECT_EQ(width_in(dir_ / "own/a.yaml"), 5);
  EXPECT_THAT(
      message_of<ConfigError>([&] { width_in(dir_.write("own/c.yaml", "extends: gpt9\n")); }),
      HasSubstr(
          "own/c.yaml:1:10: extends: cannot read 'gpt9': No such file or directory; looked for it beside"));
}

// A name must mean one configuration.
TEST(ShippedConfigs, HaveDifferentNames) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    if (entry.path().extension() == ".yaml") {
      EXPECT_TRUE(names.insert(entry.path().stem().string()).second) << entry.path();
    }
  }
  EXPECT_TRUE(names.contains("gpt2"));
}

}  // namespace
}  // namespace zoo
