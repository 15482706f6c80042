#include "io/files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/output_file.h"
#include "io/sha256.h"
#include "tests/io/small_disk.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::vector<std::string> entries_of(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

std::string host() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// The id of a process that has ended.
pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

TEST(MakeDirectory, MakesThoseAboveToo) {
  const TempDir dir;
  EXPECT_TRUE(make_directory(dir / "a/b"));
  EXPECT_TRUE(fs::is_directory(dir / "a/b"));
  EXPECT_FALSE(make_directory(dir / "a/b"));
  const auto file = dir.write("f", "");
  EXPECT_EQ(message_of<SystemError>([&] { make_directory(file / "c"); }),
            "cannot make '" + (file / "c").string() + "': Not a directory");
}

TEST(ReadFile, ReadsAllBytes) {
  const TempDir dir;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{3000000}}) {
    std::string content(size, 'x');
    if (size > 2) content[size / 2] = '\0';
    EXPECT_EQ(read_file(dir.write("f", content)), content);
  }
  EXPECT_THAT(read_file("/proc/self/status"), StartsWith("Name:"));  // reports size 0
}

TEST(ReadFile, FollowsOnlyWhatItMay) {
  const TempDir dir;
  dir.write("file", "text");
  fs::create_symlink("file", dir / "link");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);  // nobody writes into it
  fs::create_symlink("pipe", dir / "link_to_pipe");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (dir / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(socket);

  const auto problem = [&](const fs::path& path, Follow follow) {
    const auto message = message_of<DataError>([&] { read_file(path, follow); });
    const std::string start = "cannot read '" + path.string() + "': ";
    return message.starts_with(start) ? message.substr(start.size()) : message;
  };
  EXPECT_EQ(read_file(dir / "file", Follow::nothing), "text");
  EXPECT_EQ(read_file(dir / "link", Follow::links), "text");
  EXPECT_THAT(problem(dir / "link", Follow::nothing), StartsWith("it is a link, which is not followed here"));
  EXPECT_THAT(problem(dir / "link_to_pipe", Follow::nothing), StartsWith("it is a link"));
  for (const Follow follow : {Follow::links, Follow::nothing}) {
    EXPECT_EQ(problem(dir / "pipe", follow), "it is a pipe, not a regular file");
    EXPECT_EQ(problem(dir / "socket", follow), "it is a socket, not a regular file");
    EXPECT_EQ(problem("/dev/zero", follow), "it is a device, not a regular file");
    EXPECT_EQ(problem(dir.path(), follow), "Is a directory");
    EXPECT_EQ(problem(dir / "none", follow), "No such file or directory");
  }
  EXPECT_EQ(problem(dir / "link_to_pipe", Follow::links), "it is a pipe, not a regular file");
}

TEST(ReadFile, ErrorsNameThePath) {
  const TempDir dir;
  const auto problem = [](const fs::path& path) { return message_of<DataError>([&] { read_file(path); }); };
  EXPECT_EQ(problem(dir / "none"),
            "cannot read '" + (dir / "none").string() + "': No such file or directory");
  EXPECT_EQ(problem(dir.path()), "cannot read '" + dir.path().string() + "': Is a directory");
  EXPECT_EQ(problem("/dev/zero"), "cannot read '/dev/zero': it is a device");
  EXPECT_EQ(problem(dir.write("f", "") / "g"),
            "cannot read '" + (dir / "f/g").string() + "': Not a directory");
}

TEST(WriteFile, CreatesAndReplaces) {
  const TempDir dir;
  write_file_atomically(dir / "f", "one");
  write_file_atomically(dir / "f", "two\0three");
  EXPECT_EQ(read_file(dir / "f"), "two");
  write_file_atomically(dir / "f", "");
  EXPECT_EQ(read_file(dir / "f"), "");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("f"));
}

TEST(WriteFile, WorksInTheCurrentDirectory) {
  const TempDir dir;
  const auto before = fs::current_path();
  fs::current_path(dir.path());
  write_file_atomically("f", "x");
  write_directory_atomically("d/", [](const fs::path& inside) { write_file_atomically(inside / "g", "y"); });
  fs::current_path(before);
  EXPECT_EQ(read_file(dir / "f") + read_file(dir / "d/g"), "xy");
}

TEST(WriteFile, FollowsWhatTheUserNames) {
  const TempDir dir;
  const auto file = dir.write("f", "old");
  fs::create_symlink("f", dir / "link");
  write_file_atomically(dir / "link", "new", Follow::everything);
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(read_file(file), "new");
  fs::create_symlink("not there yet", dir / "dangling");
  write_file_atomically(dir / "dangling", "made", Follow::everything);
  EXPECT_EQ(read_file(dir / "not there yet"), "made");

  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const int reader = ::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(dir / "pipe", "through", Follow::everything);
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_EQ(std::string(text), "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(dir / "pipe"));
}

TEST(WriteFile, ReplacesLinksAndPipesInARun) {
  const TempDir dir;
  const auto victim = dir.write("victim", "precious");
  fs::create_symlink("victim", dir / "link");
  fs::create_symlink("nothing", dir / "dangling");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_hard_link(victim, dir / "hard");
  for (const char* name : {"link", "dangling", "pipe", "hard"}) {
    write_file_atomically(dir / name, "new");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(dir / name))) << name;
    EXPECT_EQ(read_file(dir / name), "new");
  }
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(fs::exists(dir / "nothing"));
}

TEST(WriteFile, DoesNotUseATemporaryThatIsThereAlready) {
  const TempDir dir;
  const auto victim = dir.write("victim", "precious");
  write_file_atomically(dir / "f", "");  // the next temporary has a number that is not much larger
  for (int i = 0; i < 1000; ++i)
    fs::create_symlink(victim, dir / fmt::format(".f.tmp-{}~{}-{}", host(), ::getpid(), i));
  write_file_atomically(dir / "f", "new");
  write_directory_atomically(dir / "d",
                             [](const fs::path& inside) { write_file_atomically(inside / "a", "1"); });
  EXPECT_EQ(read_file(dir / "f") + read_file(dir / "d/a"), "new1");
  EXPECT_EQ(read_file(victim), "precious");
}

TEST(WriteFile, AFullDiskLeavesWhatWasThere) {
  const TempDir dir;
  const auto path = dir.write("f", "old");
  const std::string large(100000, 'x');
  std::string message;
  {
    const SmallDisk full(5000);
    message = message_of<SystemError>([&] { write_file_atomically(path, large); });
  }
  EXPECT_EQ(message, "cannot write '" + path.string() + "': File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("f"));
}

TEST(WriteFile, ErrorsNameThePath) {
  const TempDir dir;
  const auto problem = [](const fs::path& path) {
    return message_of<SystemError>([&] { write_file_atomically(path, "x"); });
  };
  EXPECT_EQ(problem(dir / "none/f"),
            "cannot write '" + (dir / "none/f").string() + "': No such file or directory");
  fs::create_directories(dir / "d/sub");
  EXPECT_EQ(problem(dir / "d"), "cannot write '" + (dir / "d").string() + "': Is a directory");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("d"));
  EXPECT_EQ(SystemError("").exit_code(), 1);
}

TEST(WriteFile, ClearsWhatKilledWritersLeft) {
  const TempDir dir;
  const std::string prefix = ".f.tmp-" + host() + "~";
  dir.write(prefix + std::to_string(dead_process()) + "-0", "half");
  dir.write(prefix + std::to_string(::getppid()) + "-0", "in work");
  dir.write(".f.tmp-elsewhere~" + std::to_string(dead_process()) + "-0", "another machine");
  dir.write(".f.tmp-" + host() + "-2~" + std::to_string(dead_process()) + "-0", "of a longer name");
  dir.write(prefix + "notes", "not ours");
  write_file_atomically(dir / "f", "x");
  EXPECT_THAT(
      entries_of(dir.path()),
      UnorderedElementsAre("f", prefix + std::to_string(::getppid()) + "-0", StartsWith(".f.tmp-elsewhere~"),
                           StartsWith(".f.tmp-" + host() + "-2~"), prefix + "notes"));
}

// The longest that file systems allow; the name of the temporary must not be longer.
TEST(WriteFile, ANameMayHave255Bytes) {
  const TempDir dir;
  const std::string name(255, 'x');
  write_file_atomically(dir / name, "x");
  write_file_atomically(dir / name, "y");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre(name));
  EXPECT_EQ(read_file(dir / name), "y");
}

TEST(ReadFile, NoMoreThanTheLimit) {
  const TempDir dir;
  const auto path = dir.write("f", "12345");
  EXPECT_EQ(read_file(path, Follow::links, 5), "12345");
  EXPECT_THAT(message_of<DataError>([&] { read_file(path, Follow::links, 4); }),
              HasSubstr("it is larger than"));
}

TEST(OutputFile, ReportsFullDevices) {
  OutputFile file("/dev/full", OutputFile::Mode::kAppend, Follow::everything);
  EXPECT_EQ(message_of<SystemError>([&] { file.write("x"); }),
            "cannot write '/dev/full': No space left on device");
  file.write("");
  file.sync();  // a device has nothing to flush
}

TEST(OutputFile, Modes) {
  const TempDir dir;
  const auto put = [&](OutputFile::Mode mode, const char* text) {
    OutputFile file(dir / "f", mode);
    file.write(text);
    file.sync();
    file.close();
    return read_file(dir / "f");
  };
  EXPECT_EQ(put(OutputFile::Mode::kCreate, "a"), "a");
  EXPECT_EQ(put(OutputFile::Mode::kAppend, "b"), "ab");
  EXPECT_EQ(put(OutputFile::Mode::kReplace, "c"), "c");
  EXPECT_THAT(message_of<SystemError>([&] { put(OutputFile::Mode::kCreate, "d"); }), EndsWith("File exists"));
}

TEST(OutputFile, ChangesNothingElsewhere) {
  const TempDir dir;
  const auto victim = dir.write("victim", "precious");
  fs::create_symlink("victim", dir / "link");
  fs::create_symlink("nothing", dir / "dangling");
  fs::create_hard_link(victim, dir / "hard");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const auto mode : {OutputFile::Mode::kReplace, OutputFile::Mode::kAppend}) {
    const auto problem = [&](const char* name) {
      return message_of<CheckpointError>([&] { OutputFile(dir / name, mode); });
    };
    EXPECT_EQ(problem("link"),
              "cannot write '" + (dir / "link").string() +
                  "': it is a link, which is not followed here: put the file itself in its place");
    EXPECT_THAT(problem("dangling"), HasSubstr("it is a link"));
    EXPECT_THAT(problem("hard"), HasSubstr("hard links"));
    EXPECT_THAT(problem("pipe"), EndsWith("it is a pipe, not a regular file"));
  }
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(fs::exists(dir / "nothing"));
}

TEST(OutputFile, CutsWhatIsTooLong) {
  const TempDir dir;
  const auto path = dir.write("f", "0123456789");
  OutputFile file(path, OutputFile::Mode::kAppend);
  file.truncate(20);
  EXPECT_EQ(read_file(path), "0123456789");
  file.truncate(4);
  file.write("x");
  EXPECT_EQ(read_file(path), "0123x");
}

TEST(Subdirectory, IsNoLink) {
  const TempDir dir;
  EXPECT_FALSE(has_subdirectory(dir / "d"));
  make_subdirectory(dir / "d");
  make_subdirectory(dir / "d");
  EXPECT_TRUE(has_subdirectory(dir / "d"));
  fs::create_directory_symlink("d", dir / "link");
  fs::create_directory_symlink("nowhere", dir / "dangling");
  dir.write("file", "");
  for (const char* name : {"link", "dangling", "file"}) {
    EXPECT_THAT(message_of<CheckpointError>([&] { make_subdirectory(dir / name); }),
                StartsWith("cannot use '" + (dir / name).string() + "': it is a"));
  }
  EXPECT_FALSE(fs::exists(dir / "nowhere"));
}

TEST(WriteDirectory, CreatesAndReplacesWhole) {
  const TempDir dir;
  const auto path = dir / "step-1";
  write_directory_atomically(path, [&](const fs::path& inside) {
    EXPECT_NE(inside, path);
    EXPECT_EQ(inside.parent_path(), path.parent_path());
    write_file_atomically(inside / "a", "1");
    fs::create_directory(inside / "sub");
    write_file_atomically(inside / "sub/b", "2");
    EXPECT_FALSE(fs::exists(path));
  });
  EXPECT_EQ(read_file(path / "sub/b"), "2");
  write_directory_atomically(path.string() + "/", [&](const fs::path& inside) {
    EXPECT_TRUE(fs::is_empty(inside));
    write_file_atomically(inside / "c", "3");
    EXPECT_EQ(read_file(path / "a"), "1");
  });
  EXPECT_THAT(entries_of(path), UnorderedElementsAre("c"));
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("step-1"));
}

TEST(WriteDirectory, FailuresLeaveTheOldOne) {
  const TempDir dir;
  const auto path = dir / "step-1";
  write_directory_atomically(path,
                             [](const fs::path& inside) { write_file_atomically(inside / "a", "old"); });
  const auto halfway = [&](const fs::path& inside) {
    write_file_atomically(inside / "a", "new");
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(write_directory_atomically(path, halfway), std::runtime_error);
  std::string message;
  {
    const SmallDisk full(5000);
    message = message_of<SystemError>([&] {
      write_directory_atomically(path, [](const fs::path& inside) {
        OutputFile(inside / "weights", OutputFile::Mode::kReplace).write(std::string(100000, 'x'));
      });
    });
  }
  EXPECT_EQ(message, "cannot write '" + (path / "weights").string() + "': File too large");
  EXPECT_EQ(read_file(path / "a"), "old");
  EXPECT_THAT(entries_of(path), UnorderedElementsAre("a"));
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("step-1"));
  EXPECT_THAT(message_of<SystemError>([&] { write_directory_atomically(dir / "no/d", [](const auto&) {}); }),
              EndsWith("/no/d': No such file or directory"));
}

TEST(WriteDirectory, AKilledWriterLeavesNothingToSeeAndIsClearedLater) {
  const TempDir dir;
  const auto path = dir / "step-1";
  const pid_t pid = ::fork();
  if (pid == 0) {
    write_directory_atomically(path, [](const fs::path& inside) {
      OutputFile(inside / "a", OutputFile::Mode::kReplace).write("half");
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(entries_of(dir.path()).size(), 1u);
  write_directory_atomically(path,
                             [](const fs::path& inside) { write_file_atomically(inside / "a", "whole"); });
  EXPECT_EQ(read_file(path / "a"), "whole");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("step-1"));
}

TEST(ReplaceSymlink, PointsAnewAtomically) {
  const TempDir dir;
  replace_symlink("step-1", dir / "last");
  replace_symlink("step-2", dir / "last");
  EXPECT_EQ(fs::read_symlink(dir / "last"), "step-2");
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("last"));
  EXPECT_THAT(message_of<SystemError>([&] { replace_symlink("x", dir / "no/last"); }),
              HasSubstr("/no/last': No such file"));
  fs::create_directories(dir / "d/sub");
  EXPECT_THAT(message_of<SystemError>([&] { replace_symlink("x", dir / "d"); }), EndsWith("Is a directory"));
  EXPECT_THAT(entries_of(dir.path()), UnorderedElementsAre("d", "last"));
}

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Lengths around the two cases of padding; the digests are from coreutils.
  EXPECT_EQ(sha256(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(sha256(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(MappedFile, OutlivesItsObjectAndItsName) {
  const TempDir dir;
  std::shared_ptr<const char> data;
  {
    const MappedFile file(dir.write("f", "hello"));
    EXPECT_EQ(file.bytes(), "hello");
    data = file.data();
  }
  fs::remove(dir / "f");
  EXPECT_EQ(std::string_view(data.get(), 5), "hello");
  EXPECT_EQ(MappedFile(dir.write("empty", "")).bytes(), "");
}

TEST(MappedFile, ErrorsNameThePath) {
  const TempDir dir;
  EXPECT_THAT(message_of<DataError>([&] { MappedFile{dir / "none"}; }),
              EndsWith("/none': No such file or directory"));
  EXPECT_THAT(message_of<DataError>([&] { MappedFile{dir.path()}; }), EndsWith("Is a directory"));
  EXPECT_THAT(message_of<DataError>([&] { MappedFile{"/dev/null"}; }), HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace zoo::testing
