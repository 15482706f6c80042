// Tests where scripts/setup.sh gets LibTorch from: a copy of the script, with a package index on this machine
// in place of PyTorch's, with other places in which it looks for a GPU, and with a pip that only says what it
// would do.

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"
#include "tests/data/support.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDir;

struct Installation {
  int code;
  std::string output;  // stdout and stderr
  std::string pip;     // the arguments of each call of pip
};

/// Replaces every occurrence; there must be one.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), text.npos) << from;
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class SetupScript : public ::testing::Test {
 protected:
  SetupScript() {
    program("bin/dpkg-query", "echo installed");
    program("bin/nvidia-smi", "exit 9");
    program("repository/.venv/bin/pip",
            "echo \"$*\" >>'" + (dir_ / "pip").string() + "'\n[[ -z ${PIP_FAILS:-} || $* != *index-url* ]]");
    program("repository/.venv/bin/python3", "exec python3 \"$@\"");
  }
  ~SetupScript() override {
    if (server_) ::pclose(server_);
  }

  void program(const std::string& name, const std::string& script) const {
    fs::permissions(dir_.write(name, "#!/bin/bash\n" + script + "\n"), fs::perms::owner_all);
  }

  /// Serves an index with a wheel of PyTorch. Returns its address.
  std::string serve() {
    dir_.write("index/torch/index.html", "<a href='torch-2.13.0+cpu-py3-none-any.whl'>torch</a>");
    // The server ends when this test closes the pipe.
    const auto command = fmt::format(
        "cd '{}' && exec python3 -c '\nimport http.server, os, sys, threading\n"
        "class Quiet(http.server.SimpleHTTPRequestHandler):\n  def log_message(self, *a): pass\n"
        "server = http.server.ThreadingHTTPServer((\"127.0.0.1\", 0), Quiet)\n"
        "open(\"../port.new\", \"w\").write(str(server.server_port)); os.rename(\"../port.new\", "
        "\"../port\")\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\nsys.stdin.read()'",
        (dir_ / "index").string());
    server_ = ::popen(command.c_str(), "w");
    while (!fs::exists(dir_ / "port")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return "http://127.0.0.1:" + read_file(dir_ / "port");
  }

  Installation run(const std::string& index, const std::string& environment = "") const {
    auto script = read_file("scripts/setup.sh");
    script = replaced(script, "https://download.pytorch.org/whl/cpu", index);
    script = replaced(script, "/proc/driver/nvidia/version", (dir_ / "gpu").string());
    script = replaced(script, "/dev/nvidia0", (dir_ / "gpu").string());
    program("repository/scripts/setup.sh", script);
    fs::remove(dir_ / "pip");
    const auto command = fmt::format(
        "cd / && unset LIBTORCH CMAKE_PREFIX_PATH ZOO_TORCH_INDEX http_proxy HTTP_PROXY; "
        "PATH='{0}/bin':\"$PATH\" {1} "
        "'{0}/repository/scripts/setup.sh' 2>&1",
        dir_.path().string(), environment);
    FILE* pipe = ::popen(command.c_str(), "r");
    Installation result{.code = -1, .output = {}, .pip = {}};
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, n);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
    if (fs::exists(dir_ / "pip")) result.pip = read_file(dir_ / "pip");
    return result;
  }

  TempDir dir_;
  FILE* server_ = nullptr;
};

constexpr const char* kNobody = "http://127.0.0.1:1";

TEST_F(SetupScript, WithoutAGpuTheWheelForCpusComesFirst) {
  const auto index = serve();
  const auto result = run(index);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.pip, fmt::format("install -q --index-url {} torch==2.13.0\n", index));
  EXPECT_THAT(result.output, HasSubstr(index));
}

TEST_F(SetupScript, PyPiTakesThePlaceOfAnIndexThatCannotBeReached) {
  const auto result = run(kNobody);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.pip, "install -q torch==2.13.0\n");
  EXPECT_THAT(result.output, HasSubstr("cannot be reached: using PyPI, whose wheel takes several GB"));
}

TEST_F(SetupScript, PyPiTakesThePlaceOfAnIndexWithoutAWheel) {
  const auto index = serve();
  const auto result = run(index, "PIP_FAILS=1");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.pip,
            fmt::format("install -q --index-url {} torch==2.13.0\ninstall -q torch==2.13.0\n", index));
}

TEST_F(SetupScript, AMachineWithAGpuGetsTheWheelForCuda) {
  const auto index = serve();
  program("bin/nvidia-smi", "echo 'GPU 0: a GPU'");
  EXPECT_EQ(run(index).pip, "install -q torch==2.13.0\n");
  program("bin/nvidia-smi", "exit 9");
  dir_.write("gpu", "");
  EXPECT_EQ(run(index).pip, "install -q torch==2.13.0\n");
}

TEST_F(SetupScript, AnIndexCanBeChosen) {
  const auto index = serve();
  EXPECT_EQ(run(kNobody, "ZOO_TORCH_INDEX=" + index).pip,
            fmt::format("install -q --index-url {} torch==2.13.0\n", index));
  EXPECT_EQ(run(index, "ZOO_TORCH_INDEX=pypi").pip, "install -q torch==2.13.0\n");
  const auto failed = run(index, "PIP_FAILS=1 ZOO_TORCH_INDEX=" + index);
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.output, HasSubstr("(ZOO_TORCH_INDEX) failed"));
}

TEST_F(SetupScript, WhatIsInstalledStays) {
  program("repository/.venv/bin/python3", "exit 0");  // every module is there, with the right version
  const auto result = run(kNobody);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.pip, IsEmpty());
}

TEST_F(SetupScript, TheWheelForCudaGetsTheHeadersThatItLacks) {
  program("repository/.venv/bin/python3",
          "case \"$*\" in *nvidia-cuda*) exit 1 ;; *print*) echo 13.0.2 ;; *) exit 0 ;; esac");
  const auto result = run(kNobody);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.pip, "install -q cuda-toolkit[crt,cccl]==13.0.2\n");
  program("repository/.venv/bin/pip", "exit 1");
  const auto failed = run(kNobody);
  EXPECT_EQ(failed.code, 0) << failed.output;
  EXPECT_THAT(failed.output, HasSubstr("no training on several GPUs"));
}

TEST_F(SetupScript, SaysThatLibTorchCannotUseTheGpu) {
  constexpr const char* warning =
      "this machine has an NVIDIA GPU, but LibTorch has no CUDA: run ZOO_TORCH_INDEX=pypi scripts/setup.sh";
  program("repository/.venv/bin/python3", "[[ $* != *partition* ]] || echo cpu");  // torch 2.13.0+cpu
  EXPECT_THAT(run(kNobody).output, Not(HasSubstr("GPU")));
  dir_.write("gpu", "");
  const auto without = run(kNobody);
  EXPECT_EQ(without.code, 0);
  EXPECT_THAT(without.output, HasSubstr(warning));
  dir_.write("repository/.venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", "");
  EXPECT_THAT(run(kNobody).output, Not(HasSubstr("GPU")));
  dir_.write("own/share/cmake/Torch/TorchConfig.cmake", "");
  const auto own = "LIBTORCH=" + (dir_ / "own").string();
  EXPECT_THAT(run(kNobody, own).output,
              HasSubstr("the LibTorch of LIBTORCH or CMAKE_PREFIX_PATH has no CUDA"));
  dir_.write("own/lib/libtorch_cuda.so", "");
  EXPECT_THAT(run(kNobody, own).output, Not(HasSubstr("GPU")));
}

TEST_F(SetupScript, AnotherWheelTakesThePlaceOfTheInstalledOne) {
  program("repository/.venv/bin/python3", "[[ $* != *partition* ]] || echo cpu");
  EXPECT_EQ(run(kNobody, "ZOO_TORCH_INDEX=pypi").pip,
            "install -q --force-reinstall --no-deps torch==2.13.0\ninstall -q torch==2.13.0\n");
  const std::string cuda = "http://127.0.0.1:1/whl/cu126";
  EXPECT_EQ(run(kNobody, "ZOO_TORCH_INDEX=" + cuda).pip,
            fmt::format("install -q --index-url {0} --force-reinstall --no-deps torch==2.13.0\n"
                        "install -q --index-url {0} torch==2.13.0\n",
                        cuda));
  EXPECT_THAT(run(kNobody, "ZOO_TORCH_INDEX=http://127.0.0.1:1/whl/cpu/").pip, IsEmpty());
  EXPECT_THAT(run(kNobody, "ZOO_TORCH_INDEX=http://127.0.0.1:1/simple").pip, IsEmpty());
  program("repository/.venv/bin/python3", "exit 0");  // PyPI's
  EXPECT_THAT(run(kNobody, "ZOO_TORCH_INDEX=pypi").pip, IsEmpty());
}

}  // namespace
}  // namespace zoo
