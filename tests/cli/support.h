#pragma once
// The program zoo as users run it: a process with a directory, input, output and an exit code.
//
// A command without anything for a shell is run by a copy of the test's own process, which has the program
// inside. Everything else is run by a shell, which starts the program itself.

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/files.h"
#include "tests/support/program_copy.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

struct Outcome {
  int code = -1;  // the exit code, or minus the signal that ended the process
  std::string out, err;
  int64_t peak_bytes = 0;  // the most memory that it had
};

struct Surroundings {
  std::string_view input = "";            // standard input
  std::optional<rlim_t> disk_space = {};  // no file may grow beyond these bytes
};

/// The command for `zoo ARGUMENTS`.
inline std::string shell_command(const std::string& arguments) {
  const char* const program = std::getenv("ZOO_PROGRAM");
  return fmt::format("exec '{}' {}", program ? program : "zoo", arguments);
}

/// In a child process: goes to `dir`, where corpora are found and caches are kept.
inline void enter(const TempDir& dir) {
  ::setenv("ZOO_DATA", dir.path().c_str(), 1);
  ::setenv("ZOO_CACHE", (dir / "cache").c_str(), 1);
  if (::chdir(dir.path().c_str()) != 0) ::_exit(99);
}

/// In a child process: runs a command in `dir`. Does not return.
[[noreturn]] inline void run_in_shell(const TempDir& dir, const std::string& command) {
  enter(dir);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(99);
}

/// The words of a command that has no more of a shell's language than single quotes.
inline std::optional<std::vector<std::string>> plain_words(std::string_view command) {
  std::vector<std::string> words;
  bool quoted = false, in_word = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && c == ' ') {
      in_word = false;
      continue;
    } else if (!quoted && std::string_view("\"\\$`|&;<>()*?[]#~\n\t!").find(c) != std::string_view::npos) {
      return std::nullopt;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (c != '\'') words.back() += c;
  }
  return quoted ? std::nullopt : std::optional(words);
}

/// Whether a copy of this process can be the program. A copy has one thread only, so the pools of a process
/// with more would wait for threads that it lacks (but jemalloc starts its thread again). Commands that start
/// the program again, or ask how it was started, need its own file.
inline bool can_run_here(const std::vector<std::string>& words) {
  int n_threads = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    n_threads += name != "jemalloc_bg_thd";
  }
  return n_threads == 1 && std::ranges::none_of(words, [](const std::string& word) {
           return word == "compare" || word == "verify" || word == "doctor" || word.starts_with("--nproc");
         });
}

/// `zoo ARGUMENTS` in the directory `dir`. ARGUMENTS may have quotes, redirections and pipes, as in a shell.
/// Corpora are found in the directory, and caches are kept in it.
class ZooProcess {
 public:
  ZooProcess(const TempDir& dir, const std::string& arguments, const Surroundings& surroundings = {}) {
    const auto input = dir.write("stdin", surroundings.input);
    const auto command = shell_command(arguments);
    const auto words = plain_words(arguments);
    const bool here = words && can_run_here(*words);
    std::array<int, 2> out{}, err{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) std::abort();
    std::cout.flush();
    std::fflush(nullptr);  // what this process has written must not be written by its copy, too
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open(input.c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      if (surroundings.disk_space) {
        rlimit limit{};
        ::getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = *surroundings.disk_space;
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      if (here) {
        for (const int end : {out[0], out[1], err[0], err[1]}) ::close(end);
        enter(dir);
        be_program(*words);
      }
      run_in_shell(dir, command);
    }
    ::close(out[1]);
    ::close(err[1]);
    ends_ = {out[0], err[0]};
  }
  ~ZooProcess() {
    if (pid_ <= 0) return;
    kill(SIGKILL);
    finish();
  }
  ZooProcess(const ZooProcess&) = delete;
  ZooProcess& operator=(const ZooProcess&) = delete;

  void kill(int signal) const { ::kill(pid_, signal); }

  /// Waits until standard error has `text`, or until the end.
  void wait_for_error(std::string_view text) {
    while (outcome_.err.find(text) == std::string::npos && read_some()) {
    }
  }

  /// Waits until standard output has `text`, or until the end. Returns standard output so far.
  const std::string& wait_for_output(std::string_view text) {
    while (outcome_.out.find(text) == std::string::npos && read_some()) {
    }
    return outcome_.out;
  }

  /// Waits for the end.
  Outcome finish() {
    while (read_some()) {
    }
    int status = 0;
    rusage usage{};
    ::wait4(std::exchange(pid_, 0), &status, 0, &usage);
    outcome_.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    outcome_.peak_bytes = int64_t{1024} * usage.ru_maxrss;
    return std::move(outcome_);
  }

 private:
  /// Reads what has come. Returns false once nothing can come any more.
  bool read_some() {
    const std::array<std::string*, 2> texts{&outcome_.out, &outcome_.err};
    std::array<pollfd, 2> waiting{pollfd{ends_[0], POLLIN, 0}, pollfd{ends_[1], POLLIN, 0}};
    if (ends_[0] < 0 && ends_[1] < 0) return false;
    ::poll(waiting.data(), waiting.size(), -1);
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (ends_[i] < 0 || waiting[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const auto size = ::read(ends_[i], buffer.data(), buffer.size());
      if (size > 0) {
        texts[i]->append(buffer.data(), static_cast<size_t>(size));
      } else {
        ::close(std::exchange(ends_[i], -1));
      }
    }
    return true;
  }

  pid_t pid_ = 0;
  std::array<int, 2> ends_{};  // of the pipes from stdout and stderr; -1 = closed
  Outcome outcome_;
};

inline Outcome run_zoo(const TempDir& dir, const std::string& arguments,
                       const Surroundings& surroundings = {}) {
  return ZooProcess(dir, arguments, surroundings).finish();
}

/// Everything below a directory: names with contents, and links with what they point at.
inline std::map<std::string, std::string> files_below(const std::filesystem::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    const auto name = entry.path().lexically_relative(dir).string();
    files[name] = entry.is_symlink()        ? std::filesystem::read_symlink(entry).string()
                  : entry.is_regular_file() ? read_file(entry)
                                            : "";
  }
  return files;
}

/// The names of the files that are in `before` but not, or not with the same content, in `after`.
inline std::vector<std::string> differences(const std::map<std::string, std::string>& before,
                                            const std::map<std::string, std::string>& after) {
  std::vector<std::string> names;
  for (const auto& [name, content] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second != content) names.push_back(name);
  }
  return names;
}

/// The same for two runs, except files that contain times: metrics, checkpoints' states.
inline std::vector<std::string> lasting_differences(const std::filesystem::path& run,
                                                    const std::filesystem::path& other) {
  auto names = differences(files_below(run), files_below(other));
  std::erase_if(names, [](const std::string& name) {
    return name == "metrics.jsonl" || name.ends_with("state.json") || name.starts_with("events.");
  });
  return names;
}

/// Texts for every task: text.txt, pairs.de and pairs.en, table.tsv.
inline void write_corpora(const TempDir& dir) {
  std::string text, source, target, table = "sentence\tlabel\n";
  for (int i = 0; i < 40; ++i) {
    text += "to be or not to be that is the question\n";
    source += i % 2 ? "das ist gut\n" : "das war nicht gut\n";
    target += i % 2 ? "that is good\n" : "that was not good\n";
    table += i % 2 ? "that is good\tpraise\n" : "that was not good\tblame\n";
  }
  dir.write("text.txt", text);
  dir.write("pairs.de", source);
  dir.write("pairs.en", target);
  dir.write("table.tsv", table);
}

inline std::vector<std::string> keys(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

}  // namespace zoo::testing
