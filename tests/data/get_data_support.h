#pragma once
// Runs scripts/get_data.sh with made-up sources: a copy of the script with its own checksums, and
// replacements for apt-get, apt-cache and curl on the PATH.

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/sha256.h"
#include "tests/data/support.h"

namespace zoo::testing {

/// How the script ended and what it printed.
struct Result {
  int code;
  std::string output;  // stdout and stderr
  int64_t lines() const { return std::ranges::count(output, '\n'); }
};

class GetData : public ::testing::Test {
 protected:
  GetData() {
    std::filesystem::create_directories(dir_ / "repository/scripts");
    std::filesystem::copy("scripts/get_data.sh", dir_ / "repository/scripts/get_data.sh");
    std::filesystem::copy("scripts/data", dir_ / "repository/scripts/data");
    expect("tinyshakespeare/input.txt", "To be\n");
  }

  /// Makes the checksum of this file the only one.
  void expect(const std::string& file, const std::string& content) {
    dir_.write("repository/scripts/data/SHA256SUMS", sha256(content) + "  " + file + "\n");
  }

  Result run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = fmt::format(
        "cd / && PATH='{0}/bin':\"$PATH\" ZOO_DATA='{0}/data' ZOO_DATA_MIRROR='' {1} "
        "'{0}/repository/scripts/get_data.sh' {2} "
        "2>&1",
        dir_.path().string(), environment, arguments);
    FILE* pipe = ::popen(command.c_str(), "r");
    Result result{.code = -1, .output = {}};
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, n);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
    return result;
  }
  std::string mirror() const { return fmt::format("ZOO_DATA_MIRROR='{}'", (dir_ / "mirror").string()); }

  /// Puts a program on the PATH.
  void program(const std::string& name, const std::string& script) {
    const auto path = dir_.write("bin/" + name, "#!/bin/bash\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  std::vector<std::string> left_in_data() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(dir_ / "data")) return names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "data"))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  TempDir dir_;
};

class DebianPackage : public GetData {
 protected:
  void SetUp() override {
    if (std::system("command -v dpkg-deb >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs dpkg-deb";
    program("dpkg-query", "exit 1");  // nothing is installed
  }

  /// Lets apt-get download a package with these files.
  void package(const std::string& name, const std::string& version,
               const std::vector<std::pair<std::string, std::string>>& files) {
    dir_.write("package/DEBIAN/control",
               fmt::format("Package: {}\nVersion: {}\nArchitecture: all\nMaintainer: Test "
                           "<test@localhost>\nDescription: test\n",
                           name, version));
    for (const auto& [path, content] : files) dir_.write("package/" + path, content);
    const std::string base = dir_.path().string();
    ASSERT_EQ(std::system(
                  fmt::format("dpkg-deb --build '{0}/package' '{0}/made.deb' >/dev/null 2>&1", base).c_str()),
              0);
    program("apt-get",
            fmt::format("[[ ${{@: -2:1}} == download ]] && cp '{}/made.deb' ./{}.deb", base, name));
  }
};

}  // namespace zoo::testing
