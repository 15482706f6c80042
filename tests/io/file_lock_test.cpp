#include "io/file_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/files.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;

TEST(FileLock, IsHeldByOneAtATime) {
  const TempDir dir;
  const auto path = dir / "lock";
  {
    const FileLock first(path);
    EXPECT_TRUE(first.held());
    EXPECT_FALSE(first.holder());
    const FileLock second(path);
    EXPECT_FALSE(second.held());
    EXPECT_EQ(second.holder(), ::getpid());
    EXPECT_TRUE(FileLock::is_held(path));
  }
  EXPECT_FALSE(FileLock::is_held(path));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(FileLock(path).held());
}

TEST(FileLock, OfAProcessThatWasKilledIsFree) {
  const TempDir dir;
  const auto path = dir / "lock";
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(path);
    if (::write(ready[1], lock.held() ? "y" : "n", 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  {
    const FileLock lock(path);
    EXPECT_FALSE(lock.held());
    EXPECT_EQ(lock.holder(), child);
  }
  EXPECT_TRUE(fs::exists(path)) << "the other process holds it";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_TRUE(FileLock(path).held());
  ::close(ready[0]);
  ::close(ready[1]);
}

// The lock belongs to a name: a file that was moved away is another lock.
TEST(FileLock, FollowsTheName) {
  const TempDir dir;
  fs::create_directory(dir / "a");
  auto first = std::make_unique<FileLock>(dir / "a/lock");
  fs::rename(dir / "a", dir / "b");
  fs::create_directory(dir / "a");
  const FileLock second(dir / "a/lock");
  EXPECT_TRUE(second.held());
  EXPECT_FALSE(FileLock(dir / "b/lock").held());
  first.reset();
  EXPECT_TRUE(fs::exists(dir / "a/lock"));
  EXPECT_FALSE(FileLock(dir / "a/lock").held());
}

// The lock writes its owner's id into the file.
TEST(FileLock, IsNotOfAnotherFile) {
  const TempDir dir;
  const auto victim = dir.write("victim", "precious");
  fs::create_symlink("victim", dir / "link");
  fs::create_symlink("nothing", dir / "dangling");
  fs::create_hard_link(victim, dir / "hard");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "hard", "pipe"}) {
    EXPECT_THAT(message_of<CheckpointError>([&] { FileLock(dir / name); }),
                ::testing::StartsWith("cannot write '" + (dir / name).string()));
  }
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(fs::exists(dir / "nothing"));
}

TEST(FileLock, WhereItCannotBeMadeIsAnError) {
  const TempDir dir;
  EXPECT_THAT(message_of<SystemError>([&] { FileLock(dir / "none/lock"); }),
              ::testing::HasSubstr("none/lock': No such file or directory"));
}

}  // namespace
}  // namespace zoo::testing
