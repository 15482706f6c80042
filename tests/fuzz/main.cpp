// fuzz_tests: mutated files, read by the library in child processes. Each input must be accepted, or refused
// with an error of exit code 2, in little time and memory; see CONTRIBUTING.md.
//
//   fuzz_tests [--target NAME]... [--runs N] [--seed N]
//       Reads all known inputs of each target, then N mutated ones.
//
//   fuzz_tests --target NAME --replay FILE...
//       Reads these inputs.
//
//   fuzz_tests --self-test
//       Tells whether crashes, hangs and the like are found at all.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/files.h"
#include "tests/fuzz/fork_server.h"
#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> targets;
  std::vector<fs::path> replay;
  int64_t runs = 10000;
  uint64_t seed = 1;
  bool self_test = false;
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  bool files = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] {
      if (i + 1 == words.size()) throw UsageError(words[i] + " needs a value");
      return words[++i];
    };
    const std::string& word = words[i];
    if (word == "--target") {
      arguments.targets.push_back(value());
    } else if (word == "--runs") {
      arguments.runs = std::stoll(value());
    } else if (word == "--seed") {
      arguments.seed = std::stoull(value());
    } else if (word == "--self-test") {
      arguments.self_test = true;
    } else if (word == "--replay") {
      files = true;
    } else if (files) {
      arguments.replay.emplace_back(word);
    } else {
      throw UsageError("unknown argument " + word);
    }
  }
  return arguments;
}

/// The files of a folder in the order of their names; a folder that does not exist has none.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Seeds read_all(const std::vector<fs::path>& files) {
  Seeds texts;
  for (const auto& file : files) texts.push_back(read_file(file));
  return texts;
}

/// Reads known inputs. Those that `must_be_accepted` are seeds: a target that refuses them tests nothing.
bool replay(const Target& target, const Seeds& inputs, const std::vector<std::string>& names,
            bool must_be_accepted) {
  const auto report = run_all(static_cast<int64_t>(inputs.size()),
                              [&](int64_t i) { target.read(inputs[static_cast<size_t>(i)]); });
  for (const auto& [index, problem] : report.failures)
    std::cout << fmt::format("{}: {}: {}\n", target.name, names[static_cast<size_t>(index)], problem);
  if (must_be_accepted && report.failures.empty() && report.n_accepted < report.n_inputs) {
    std::cout << fmt::format("{}: only {} of {} seeds are accepted\n", target.name, report.n_accepted,
                             report.n_inputs);
    return false;
  }
  return report.failures.empty();
}

bool replay_known(const Target& target, const fs::path& here) {
  const auto seeds = files_in(here / "seeds" / target.name), found = files_in(here / "found" / target.name);
  const auto names = [](const std::vector<fs::path>& files) {
    return std::vector<std::string>(files.begin(), files.end());
  };
  std::vector<std::string> made;
  for (size_t i = 0; i < target.more_seeds.size(); ++i) made.push_back(fmt::format("seed {}", i));
  bool good = replay(target, read_all(seeds), names(seeds), true);
  good = replay(target, target.more_seeds, made, false) && good;
  return replay(target, read_all(found), names(found), false) && good;
}

bool fuzz(const Target& target, const fs::path& here, const Arguments& arguments) {
  Seeds seeds = read_all(files_in(here / "seeds" / target.name));
  seeds.insert(seeds.end(), target.more_seeds.begin(), target.more_seeds.end());
  const auto input = [&](int64_t i) {
    CounterRandom random({arguments.seed, static_cast<uint64_t>(i)});
    return target.mutate(random, seeds);
  };
  const auto report = run_all(arguments.runs, [&](int64_t i) { target.read(input(i)); });
  std::cout << fmt::format(
      "{:<14} {:>8} inputs, {:>5.1f} % accepted, {} failures; the slowest took {:.3f} s (input {}), "
      "the largest {:.0f} MB (input {})\n",
      target.name, report.n_inputs,
      100.0 * static_cast<double>(report.n_accepted) / static_cast<double>(report.n_inputs),
      report.failures.size(), report.longest_seconds, report.longest_index,
      static_cast<double>(report.most_bytes) / 1e6, report.largest_index);
  for (const auto& [index, problem] : report.failures) {
    const auto file = fs::path("fuzz-found") / target.name / fmt::format("{}-{}", arguments.seed, index);
    fs::create_directories(file.parent_path());
    write_file_atomically(file, input(index));
    std::cout << fmt::format("{}: input {}: {}\n  kept as {}\n", target.name, index, problem, file.string());
  }
  return report.failures.empty();
}

/// Inputs that fail in every way must be found, and only these.
bool self_test() {
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"", [] {}},
      {"", [] { throw DataError("refused"); }},
      {"signal 11", [] { ::raise(SIGSEGV); }},
      {"ended itself with code", [] { std::exit(255); }},
      {"a foreign exception: odd", [] { throw std::runtime_error("odd"); }},
      {"exit code 1: disk", [] { throw SystemError("disk"); }},
      {"more than 0.3 seconds",
       [] {
         for (volatile bool forever = true; forever;) {
         }
       }},
#if !defined(__SANITIZE_ADDRESS__)
      {"more memory than allowed", [] { std::vector<char>(size_t{1} << 29, 'x'); }},
#endif
      {"", [] {}},
  };
  const auto report =
      run_all(static_cast<int64_t>(cases.size()), [&](int64_t i) { cases[static_cast<size_t>(i)].second(); },
              {.seconds = 0.3, .bytes = int64_t{1} << 28});
  std::map<int64_t, std::string> found;
  for (const auto& [index, problem] : report.failures) found[index] = problem;
  bool good = report.n_accepted == 2;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& expected = cases[i].first;
    const auto problem = found[static_cast<int64_t>(i)];
    if (problem.starts_with(expected) || (!expected.empty() && problem.find(expected) != problem.npos)) {
      if (expected.empty() == problem.empty()) continue;
    }
    std::cout << fmt::format("case {}: expected '{}', found '{}'\n", i, expected, problem);
    good = false;
  }
  return good;
}

int run(const Arguments& arguments) {
  if (arguments.self_test) return self_test() ? EXIT_SUCCESS : EXIT_FAILURE;
  // Threads do not survive a fork.
  at::set_num_threads(1);
  const fs::path sources = ZOO_SOURCES, here = sources / "tests/fuzz";
  const testing::TempDir work;
  ::setenv("ZOO_DATA", (work / "data").c_str(), 1);
  ::setenv("ZOO_CACHE", (work / "cache").c_str(), 1);
  auto targets = file_targets(work, sources);
  for (auto& target : run_targets(work)) targets.push_back(std::move(target));
  for (auto& target : hub_targets(work, sources)) targets.push_back(std::move(target));
  for (auto& target : gguf_targets(work)) targets.push_back(std::move(target));
  for (auto& target : template_targets()) targets.push_back(std::move(target));
  for (auto& target : constraint_targets()) targets.push_back(std::move(target));
  for (auto& target : request_targets()) targets.push_back(std::move(target));
  bool good = true;
  size_t n_used = 0;
  for (const auto& target : targets) {
    const auto& wanted = arguments.targets;
    if (!wanted.empty() && std::ranges::find(wanted, target.name) == wanted.end()) continue;
    ++n_used;
    if (!arguments.replay.empty()) {
      std::vector<std::string> names(arguments.replay.begin(), arguments.replay.end());
      good = replay(target, read_all(arguments.replay), names, false) && good;
      continue;
    }
    good = replay_known(target, here) && good;
    good = fuzz(target, here, arguments) && good;
    std::cout.flush();
  }
  if (n_used < std::max<size_t>(arguments.targets.size(), 1)) {
    std::string names;
    for (const auto& target : targets) names += fmt::format("\n  {:<14} {}", target.name, target.doc);
    throw UsageError("the targets are:" + names);
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace zoo::fuzz

int main(int argc, char** argv) {
  try {
    return zoo::fuzz::run(zoo::fuzz::parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::cerr << "fuzz_tests: " << error.what() << '\n';
    return 2;
  }
}
