#pragma once
// References computed at test time by Python scripts of this folder: one safetensors file a case. Where no
// Python with torch, transformers and safetensors is found the tests are skipped, or fail if
// ZOO_REQUIRE_REFERENCES is set.

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "io/safetensors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

constexpr double kForwardTolerance = 1e-5;   // of the largest value, at least 1
constexpr double kGradientTolerance = 1e-4;  // of the tensor's norm

/// The Python that has the reference implementations: $ZOO_PYTHON, or that of .venv.
inline std::string reference_python() {
  if (const char* const chosen = std::getenv("ZOO_PYTHON")) return chosen;
  return (std::filesystem::absolute(__FILE__).parent_path() / "../../.venv/bin/python3")
      .lexically_normal()
      .string();
}

/// The version of transformers: the newest one, which the Python has, or the last one of the version before,
/// which scripts/setup.sh --tests puts into a folder beside it.
enum class Transformers { newest, of_version_4 };

/// The beginning of a command that makes Python find this version of transformers.
inline std::string environment_of(Transformers version) {
  if (version == Transformers::newest) return {};
  const auto python = std::filesystem::path(reference_python());
  return "PYTHONPATH='" + (python.parent_path().parent_path() / "transformers-4").string() + "' ";
}

/// Runs a script, by default all scripts in one Python process, as make_references.py describes. If there is
/// no Python, OUT/missing.txt says so.
inline void make_references(const std::filesystem::path& out, const std::string& script = "",
                            Transformers version = Transformers::newest) {
  constexpr int not_found = 127;
  const auto folder = std::filesystem::absolute(__FILE__).parent_path();
  std::filesystem::create_directories(out);
  std::filesystem::remove(out / "missing.txt");
  const auto log = out / "log.txt";
  const std::string command = environment_of(version) + "OMP_NUM_THREADS=1 '" + reference_python() + "' '" +
                              (folder / "make_references.py").string() + "' --out '" + out.string() + "' " +
                              script + " >'" + log.string() + "' 2>&1";
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 0) return;
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  if (code != not_found) throw std::runtime_error("make_references.py failed: " + text.str());
  std::ofstream(out / "missing.txt") << text.str();
}

/// The files of one script.
class References {
 public:
  /// ctest has all files made in $ZOO_REFERENCES before the tests; otherwise the first call runs the script.
  static const References& of(const std::string& script, Transformers version = Transformers::newest) {
    static std::map<std::pair<std::string, Transformers>, std::unique_ptr<References>> scripts;
    auto& entry = scripts[{script, version}];
    if (!entry) entry.reset(new References(script, version));
    return *entry;
  }
  /// The folder, below that of all references, of those that a version of transformers makes.
  static std::filesystem::path folder_of(Transformers version) {
    return version == Transformers::newest ? "" : "transformers-4";
  }
  bool available() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }
  /// Packages whose versions are not those that the tests are for, a line each.
  const std::string& other_versions() const { return other_versions_; }
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".safetensors"); }

 private:
  References(const std::string& script, Transformers version) {
    const char* const made = std::getenv("ZOO_REFERENCES");
    const auto out = (made ? std::filesystem::path(made) : temporary_.path()) / folder_of(version);
    if (!made) make_references(out, script, version);
    folder_ = out / std::filesystem::path(script).stem();
    const auto content = [](const std::filesystem::path& path) {
      std::ostringstream text;
      text << std::ifstream(path).rdbuf();
      return text.str();
    };
    for (const auto& missing : {out / "missing.txt", folder_ / "missing.txt"}) {
      if (problem_.empty() && !content(missing).empty()) problem_ = "no references: " + content(missing);
    }
    other_versions_ = content(out / "versions.txt");
  }

  TempDir temporary_;
  std::filesystem::path folder_;
  std::string problem_, other_versions_;
};

/// Tests that read one script's files.
class ReferenceTest : public ::testing::Test {
 protected:
  explicit ReferenceTest(std::string script, Transformers version = Transformers::newest)
      : script_(std::move(script)), version_(version) {}
  void SetUp() override {
    const auto& references = References::of(script_, version_);
    if (references.available()) return;
    if (std::getenv("ZOO_REQUIRE_REFERENCES")) FAIL() << references.problem();
    GTEST_SKIP() << references.problem();
  }
  void TearDown() override {
    const auto& versions = References::of(script_, version_).other_versions();
    if (HasFailure() && !versions.empty())
      ADD_FAILURE() << "The references may differ because of their versions:\n" << versions;
  }
  std::filesystem::path file(const std::string& name) const {
    return References::of(script_, version_).file(name);
  }

 private:
  std::string script_;
  Transformers version_;
};

/// |actual - expected| <= tolerance·max(1, |expected|max), with equal shapes.
inline void expect_close(const torch::Tensor& actual, const torch::Tensor& expected, const std::string& what,
                         double tolerance = kForwardTolerance) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (expected.numel() == 0) return;
  const auto a = actual.detach().to(torch::kFloat64), b = expected.detach().to(torch::kFloat64);
  const double error = (a - b).abs().max().item<double>();
  EXPECT_LE(error, tolerance * std::max(1.0, b.abs().max().item<double>())) << what;
}

/// One case of a script, see reference.py.
class ReferenceCase {
 public:
  explicit ReferenceCase(const std::filesystem::path& path) : file_(path) {}

  torch::Tensor get(const std::string& name) const { return file_.tensor(name).clone(); }
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> result;
    for (const auto& name : file_.names()) {
      if (name.starts_with(prefix)) result.push_back(name.substr(prefix.size()));
    }
    return result;
  }

  /// A leaf, differentiable where the reference differentiated it.
  torch::Tensor input(const std::string& name) {
    auto tensor = get("input/" + name);
    if (file_.contains("grad_input/" + name)) inputs_[name] = tensor.requires_grad_(true);
    return tensor;
  }
  torch::Tensor output(const std::string& name) const { return get("output/" + name); }

  /// Fills every parameter; the two sides must have the same ones.
  void load(torch::nn::Module& module) const {
    const torch::NoGradGuard no_grad;
    auto expected = names("param/");
    std::vector<std::string> actual;
    for (const auto& item : module.named_parameters()) actual.push_back(item.key());
    std::sort(expected.begin(), expected.end());
    std::sort(actual.begin(), actual.end());
    ASSERT_EQ(actual, expected);
    for (auto& item : module.named_parameters()) {
      const auto value = get("param/" + item.key());
      ASSERT_EQ(item.value().sizes(), value.sizes()) << item.key();
      item.value().copy_(value);
    }
  }

  void expect_output(const std::string& name, const torch::Tensor& actual,
                     double tolerance = kForwardTolerance) const {
    expect_close(actual, output(name), "output " + name, tolerance);
  }

  /// Backpropagates the reference's upstream gradients.
  void backward(const std::vector<std::pair<std::string, torch::Tensor>>& outputs) const {
    std::vector<torch::Tensor> roots, gradients;
    for (const auto& [name, tensor] : outputs) {
      roots.push_back(tensor);
      gradients.push_back(get("upstream/" + name));
    }
    torch::autograd::backward(roots, gradients);
  }

  /// After a backward pass: every parameter's gradient, and that of every input taken from input().
  void expect_gradients(const torch::nn::Module* module = nullptr) const {
    std::map<std::string, torch::Tensor> actual;
    if (module) {
      for (const auto& item : module->named_parameters()) actual["grad/" + item.key()] = item.value().grad();
    }
    for (const auto& [name, tensor] : inputs_) actual["grad_input/" + name] = tensor.grad();
    ASSERT_FALSE(actual.empty());

    // Some gradients are zero in exact arithmetic (a bias of all keys shifts all scores alike): what rounding
    // leaves there is judged by the size of the others.
    double largest = 0;
    for (const auto& [name, tensor] : actual) largest = std::max(largest, root_mean_square(get(name)));
    EXPECT_GT(largest, 0.0);
    for (const auto& [name, tensor] : actual) {
      const auto expected = get(name);
      ASSERT_TRUE(tensor.defined()) << name;
      ASSERT_EQ(tensor.sizes(), expected.sizes()) << name;
      const double error = root_mean_square(tensor - expected);
      EXPECT_LE(error, kGradientTolerance * root_mean_square(expected) + 1e-6 * largest) << name;
    }
  }

 private:
  static double root_mean_square(const torch::Tensor& tensor) {
    return std::sqrt(tensor.to(torch::kFloat64).square().mean().item<double>());
  }

  SafetensorsFile file_;
  std::map<std::string, torch::Tensor> inputs_;
};

}  // namespace zoo::testing
