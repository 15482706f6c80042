#include "io/config/config_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Directories for a configuration, for the user, and for data.
class Paths : public ::testing::Test {
 protected:
  Paths() {
    for (const auto* const name : {"config", "here", "data"}) fs::create_directory(dir_ / name);
    here_ = std::make_unique<WorkingDirectory>(dir_ / "here");
  }
  std::string found(const ConfigPath& path) const {
    const auto file = find_path(path, is_file);
    return file ? fs::weakly_canonical(*file).lexically_relative(fs::canonical(dir_.path())).string() : "";
  }

  TempDir dir_;
  ScopedEnvironment root_{"ZOO_DATA", (dir_ / "data").string()};
  ConfigPath path_{"a/b.txt", dir_ / "config"};

 private:
  std::unique_ptr<WorkingDirectory> here_;
};

TEST_F(Paths, AreLookedForInThreePlacesInOrder) {
  EXPECT_EQ(found(path_), "");
  dir_.write("data/a/b.txt", "");
  EXPECT_EQ(found(path_), "data/a/b.txt");
  dir_.write("here/a/b.txt", "");
  EXPECT_EQ(found(path_), "here/a/b.txt");
  dir_.write("config/a/b.txt", "");
  EXPECT_EQ(found(path_), "config/a/b.txt");
  EXPECT_EQ(found({"a/b.txt"}), "here/a/b.txt") << "from the command line";
  EXPECT_EQ(found({(dir_ / "data/a/b.txt").string(), dir_ / "config"}), "data/a/b.txt") << "absolute";
  EXPECT_EQ(found({"", dir_ / "config"}), "");
}

TEST_F(Paths, TheMessageNamesThePlaces) {
  const auto name = [&](const char* directory) { return "(" + (dir_ / directory).string(); };
  EXPECT_THAT(places_of(path_), AllOf(HasSubstr("beside the configuration " + name("config") + ")"),
                                      HasSubstr("in the working directory " + name("here") + ")"),
                                      HasSubstr("in the data root " + name("data") + ";")));
  EXPECT_THAT(places_of({"x"}), Not(HasSubstr("beside")));
  EXPECT_EQ(places_of({"/x", dir_ / "config"}), "");
  const ScopedEnvironment none("ZOO_DATA", "");
  EXPECT_THAT(places_of(path_), HasSubstr("in the data root " + name("here/datasets") + ";"));
}

TEST_F(Paths, PinnedPathsLeadToTheSameFileFromAnywhere) {
  EXPECT_EQ(pinned(path_, is_file), path_) << "not found";
  dir_.write("data/a/b.txt", "");
  EXPECT_EQ(pinned(path_, is_file).text, "a/b.txt") << "the name of a corpus, on this machine and on others";
  {
    const ScopedEnvironment relative("ZOO_DATA", "../data");
    EXPECT_EQ(pinned(path_, is_file).text, (dir_ / "data/a/b.txt").string());
  }
  dir_.write("here/a/b.txt", "");
  const auto pin = pinned(path_, is_file);
  EXPECT_EQ(pin.text, (dir_ / "here/a/b.txt").string());
  EXPECT_EQ(pinned(pin, is_file).text, pin.text);
  EXPECT_TRUE(may_be(path_, pin));
  fs::remove(dir_ / "here/a/b.txt");
  EXPECT_TRUE(may_be(path_, pin)) << "it may have been there";
  EXPECT_FALSE(may_be({"a/c.txt", dir_ / "config"}, pin));
}

TEST_F(Paths, DotsBehindALinkAreKept) {
  dir_.write("elsewhere/in/x", "");
  dir_.write("elsewhere/b.txt", "");
  fs::create_directory_symlink(dir_ / "elsewhere/in", dir_ / "config/link");
  const auto pin = pinned({"link/../b.txt", dir_ / "config"}, is_file);
  EXPECT_EQ(found(pin), "elsewhere/b.txt");
}

}  // namespace
}  // namespace zoo::testing
