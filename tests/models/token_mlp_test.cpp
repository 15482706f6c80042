#include "models/mixers/token_mlp.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr int64_t kChannels = 6, kPlaces = 5;

TokenMlp token_mlp() { return TokenMlp(TokenMlpOptions(kPlaces, 7)); }

// A channel does not see another, and all have the same network.
TEST(TokenMlp, TreatsEveryChannelAlike) {
  const torch::NoGradGuard no_grad;
  auto mixer = token_mlp();
  const auto x = torch::randn({2, kPlaces, kChannels});
  EXPECT_TRUE(torch::allclose(mixer(x.roll(2, 2)), mixer(x).roll(2, 2), 1e-5, 1e-6));
  auto other = x.clone();
  other.select(2, 3).add_(1);
  const auto changed = (mixer(other) - mixer(x)).abs().amax({0, 1}) > 1e-6;
  EXPECT_TRUE(torch::equal(changed.nonzero().flatten(), torch::tensor({3})));
}

TEST(TokenMlp, PaddingIsZeroAndIsNotMixed) {
  const torch::NoGradGuard no_grad;
  auto mixer = token_mlp();
  const auto x = torch::randn({2, kPlaces, kChannels});
  const auto mask = Mask::lengths(torch::tensor({3, 5}));
  const auto y = mixer(x, {.mask = mask});
  EXPECT_TRUE(torch::allclose(y[1], mixer(x)[1], 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(y[0].narrow(0, 0, 3), mixer(x.narrow(1, 0, 3))[0], 1e-5, 1e-6));
}

TEST(TokenMlp, RefusesWhatItCannotDo) {
  auto mixer = token_mlp();
  EXPECT_THAT(message_of<DataError>([&] { mixer(torch::zeros({1, kPlaces + 1, kChannels})); }),
              HasSubstr("a sequence of 6 tokens is longer than the length 5"));
  EXPECT_THROW(mixer(torch::zeros({1, kPlaces, kChannels}), {.mask = Mask::causal()}), c10::Error);
  EXPECT_THROW(mixer->new_state(1), UsageError);
}

}  // namespace
}  // namespace zoo
