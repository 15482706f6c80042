// The operations of RandAugment against PIL.

#include "data/images/rand_augment.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class RandAugmentParity : public ReferenceTest {
 protected:
  RandAugmentParity() : ReferenceTest("reference_rand_augment.py") {}

  static Image image_of(const torch::Tensor& pixels) {
    const auto* const first = pixels.const_data_ptr<uint8_t>();
    return {.shape = {.channels = pixels.size(0), .height = pixels.size(1), .width = pixels.size(2)},
            .pixels = {first, first + pixels.numel()}};
  }
};

constexpr auto names = config_names(ImageOperation{});

// Every pixel is that of PIL, at small and large amounts in both directions.
TEST_F(RandAugmentParity, OperationsAsPilDoesThem) {
  const ReferenceCase reference(file("rand_augment"));
  int64_t n_results = 0;
  for (const auto& number : reference.names("image/")) {
    const Image image = image_of(reference.get("image/" + number));
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string of_operation = "result/" + number + "/" + std::string(names[i]) + "/";
      for (const auto& text : reference.names(of_operation)) {
        SCOPED_TRACE(of_operation + text);
        const int64_t magnitude = std::stoll(text);
        const auto operation = static_cast<ImageOperation>(i);
        const double amount = amount_of(operation, std::abs(magnitude), image.shape);
        const Image found = changed(image, operation, text[0] == '-' ? -amount : amount);
        EXPECT_EQ(found.pixels, image_of(reference.get(of_operation + text)).pixels);
        ++n_results;
      }
    }
  }
  EXPECT_GT(n_results, 1000);
}

TEST_F(RandAugmentParity, AmountsAsTorchvisionHasThem) {
  const ReferenceCase reference(file("rand_augment"));
  for (const auto& number : reference.names("image/")) {
    const Image image = image_of(reference.get("image/" + number));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto expected = reference.get("amounts/" + number + "/" + std::string(names[i]));
      ASSERT_EQ(expected.numel(), 31);
      for (int64_t magnitude = 0; magnitude <= 30; ++magnitude) {
        EXPECT_NEAR(amount_of(static_cast<ImageOperation>(i), magnitude, image.shape),
                    expected[magnitude].item<double>(), 1e-9)
            << names[i] << " " << magnitude;
      }
    }
  }
}

}  // namespace
}  // namespace zoo::testing
