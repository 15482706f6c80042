#include "data/images/image_batches.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "data/epoch_plan.h"
#include "data/images/augment.h"

namespace zoo {
namespace {

class ImageBatches final : public PlannedBatches {
 public:
  ImageBatches(LabelledImages images, torch::Tensor targets, const ImageConfig& config,
               PixelStatistics statistics, int64_t tokens_per_image, const BatchOptions& options)
      : PlannedBatches(unbucketed(options)),
        images_(std::move(images)),
        targets_(std::move(targets)),
        config_(config),
        statistics_(std::move(statistics)),
        tokens_per_image_(tokens_per_image) {}

 private:
  EpochPlan make_plan(int64_t epoch) const override {
    return plan_epoch(std::vector<int64_t>(static_cast<size_t>(n_examples()), tokens_per_image_), options(),
                      epoch);
  }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    const auto B = std::ssize(examples), size = config_.size;
    const bool mixes = shuffled() && config_.augment.mixes();
    const auto used = used_rows(B);
    auto images = used.count < B ? torch::zeros({B, config_.channels, size, size})
                                 : torch::empty({B, config_.channels, size, size});
    // The numbers of the images that are mixed in.
    std::vector<int64_t> others(examples.begin(), examples.end());
    auto shares = torch::zeros({mixes ? B : 0});
    float* to = images.mutable_data_ptr<float>();
    for (int64_t b = 0; b < B; ++b, to += n_numbers()) {
      const int64_t example = examples[static_cast<size_t>(b)];
      if (!used.has(b)) continue;
      if (!shuffled()) {
        write_normalised(fitted(images_.image(example), config_), statistics_, to);
        continue;
      }
      CounterRandom random(
          {options().seed, kAugmentPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(example)});
      write_augmented(example, random, to);
      if (!mixes) continue;
      const int64_t other = others[static_cast<size_t>(b)] = random.below(n_examples());
      shares.mutable_data_ptr<float>()[b] = static_cast<float>(mix_in(other, random, to));
    }
    Batch batch{.targets = targets_at({examples.begin(), examples.end()}),
                .fields = {{fields::kImages, images}},
                .tokens = B * tokens_per_image_};
    if (!mixes) return batch;
    const auto other_targets = targets_at(others);
    if (targets_.is_floating_point()) {
      batch.targets = other_targets.lerp(batch.targets, shares.unsqueeze(1));
    } else {
      auto made = torch::zeros_like(other_targets);  // the rows of other processes are not made
      made.narrow(0, used.first, used.count).copy_(other_targets.narrow(0, used.first, used.count));
      batch.fields.insert({{"other_targets", made}, {"shares", shares}});
    }
    return batch;
  }

  int64_t n_examples() const { return targets_.size(0); }
  torch::Tensor targets_at(const std::vector<int64_t>& rows) const {
    return targets_.index_select(0, torch::tensor(rows));
  }
  int64_t n_numbers() const { return config_.channels * config_.size * config_.size; }

  void write_augmented(int64_t example, CounterRandom& random, float* to) const {
    const int64_t size = config_.size;
    write_normalised(augmented(images_.image(example), config_, random), statistics_, to);
    const auto erased = rectangle_to_erase(size, size, config_.augment, random);
    if (!erased) return;
    // 0 is the mean of all pixels.
    for_each_row(*erased, [&](int64_t begin) { std::fill_n(to + begin, erased->width, 0.0F); });
  }

  /// Mixes an image into the one at `to`; returns the share of the latter.
  double mix_in(int64_t other, CounterRandom& random, float* to) const {
    std::vector<float> numbers(static_cast<size_t>(n_numbers()));
    write_augmented(other, random, numbers.data());
    const auto mixture = draw_mixture(config_.size, config_.size, config_.augment, random);
    if (mixture.pasted) {
      for_each_row(*mixture.pasted, [&](int64_t begin) {
        std::copy_n(numbers.data() + begin, mixture.pasted->width, to + begin);
      });
    } else {
      const auto share = static_cast<float>(mixture.share);
      for (size_t i = 0; i < numbers.size(); ++i) to[i] = share * to[i] + (1 - share) * numbers[i];
    }
    return mixture.share;
  }

  /// Calls `use` with the index of the first number of each row of a part, in every channel.
  template <class Use>
  void for_each_row(const Rectangle& part, Use use) const {
    for (int64_t c = 0; c < config_.channels; ++c)
      for (int64_t row = 0; row < part.height; ++row)
        use((c * config_.size + part.top + row) * config_.size + part.left);
  }

  LabelledImages images_;
  torch::Tensor targets_;
  ImageConfig config_;
  PixelStatistics statistics_;
  int64_t tokens_per_image_;
};

}  // namespace

void write_normalised(const Image& image, const PixelStatistics& statistics, float* to) {
  constexpr double white = 255;
  const auto plane = static_cast<size_t>(image.shape.height * image.shape.width);
  for (size_t c = 0; c < static_cast<size_t>(image.shape.channels); ++c) {
    const auto scale = static_cast<float>(1 / (white * statistics.deviation.at(c)));
    const auto shift = static_cast<float>(-statistics.mean.at(c) / statistics.deviation.at(c));
    const uint8_t* const from = image.pixels.data() + c * plane;
    for (size_t i = 0; i < plane; ++i) to[c * plane + i] = static_cast<float>(from[i]) * scale + shift;
  }
}

std::unique_ptr<BatchSource> image_batches(LabelledImages images, torch::Tensor targets,
                                           const ImageConfig& config, const PixelStatistics& statistics,
                                           int64_t tokens_per_image, const BatchOptions& options) {
  return std::make_unique<ImageBatches>(std::move(images), std::move(targets), config, statistics,
                                        tokens_per_image, options);
}

}  // namespace zoo
