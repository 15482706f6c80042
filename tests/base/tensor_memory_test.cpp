#include "base/tensor_memory.h"

#include <new>

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/memory_pool.h"

namespace zoo {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

/// What memory_shortage() says of the error of `make`.
std::optional<std::string> shortage_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const std::exception& error) {
    return memory_shortage(error);
  }
  ADD_FAILURE() << "nothing was thrown";
  return std::nullopt;
}

TEST(MemoryShortage, IsToldFromOtherErrors) {
  EXPECT_EQ(shortage_of([] { TORCH_CHECK(false, "sizes differ"); }), std::nullopt);
  EXPECT_EQ(shortage_of([] { throw std::runtime_error("can't allocate memory"); }), std::nullopt);
  EXPECT_THAT(shortage_of([] { throw std::bad_alloc(); }), Optional(Eq("")));
  EXPECT_THAT(shortage_of([] { TORCH_CHECK(false, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"); }),
              Optional(Eq("")));
}

TEST(MemoryShortage, SaysHowMuchWasAskedFor) {
  EXPECT_THAT(shortage_of([] {
                TORCH_CHECK_WITH(
                    OutOfMemoryError, false,
                    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity "
                    "of 79.11 GiB of which 10.00 MiB is free.");
              }),
              Optional(Eq(" (20.00 MiB more were asked for)")));
  // What LibTorch's own allocator and ours say of more memory than any machine has.
  EXPECT_THAT(shortage_of([] { torch::empty({int64_t{1} << 60}, torch::kUInt8); }),
              Optional(Eq(" (1152921504606846976 bytes more were asked for)")));
  EXPECT_THAT(shortage_of([] { MemoryPool().allocate(size_t{1} << 60); }),
              Optional(HasSubstr("bytes more were asked for)")));
}

}  // namespace
}  // namespace zoo
