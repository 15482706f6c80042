// The main function of all test programs.

#include <mutex>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

/// Begins each test like the first one of a process, with the same random numbers and number of threads, and
/// with denormal numbers, so that its result does not depend on other tests.
class FreshStart final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    at::set_num_threads(n_threads_);
    at::globalContext().setFlushDenormal(false);
    auto generator = at::globalContext().defaultGenerator(at::kCPU);
    const std::scoped_lock lock(generator.mutex());
    generator.set_current_seed(c10::default_rng_seed_val);
  }

 private:
  int n_threads_ = at::get_num_threads();
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new FreshStart);  // deleted by its new owner
  return RUN_ALL_TESTS();
}
