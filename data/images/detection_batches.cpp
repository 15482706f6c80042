#include "data/images/detection_batches.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "data/epoch_plan.h"
#include "data/images/annotated_image.h"
#include "data/images/image_batches.h"

namespace zoo {
namespace {

using AnnotatedObjects = std::vector<AnnotatedObject>;

/// The fields boxes, box_classes and batch_counts.
void add_objects(const std::vector<AnnotatedObjects>& rows, const std::vector<Image>& images, Batch& batch) {
  const auto B = std::ssize(rows);
  int64_t M = 1;
  for (const auto& objects : rows) M = std::max<int64_t>(M, std::ssize(objects));
  auto boxes = torch::zeros({B, M, 4});
  auto classes = torch::full({B, M}, -1, torch::kInt64);
  auto counts = torch::empty({B}, torch::kInt64);
  for (int64_t b = 0; b < B; ++b) {
    const auto& objects = rows[static_cast<size_t>(b)];
    const auto& shape = images[static_cast<size_t>(b)].shape;
    const auto height = static_cast<double>(shape.height), width = static_cast<double>(shape.width);
    counts.mutable_data_ptr<int64_t>()[b] = std::ssize(objects);
    float* to = boxes[b].mutable_data_ptr<float>();
    int64_t* to_class = classes[b].mutable_data_ptr<int64_t>();
    for (const auto& object : objects) {
      const auto& box = object.box;
      *to++ = static_cast<float>((box.x + box.width / 2) / width);
      *to++ = static_cast<float>((box.y + box.height / 2) / height);
      *to++ = static_cast<float>(box.width / width);
      *to++ = static_cast<float>(box.height / height);
      *to_class++ = object.category;
    }
  }
  batch.fields.insert({{fields::kBoxes, boxes},
                       {fields::kBoxClasses, classes},
                       {fields::kBatchCounts, counts.unsqueeze(0).repeat({B, 1})}});
}

class DetectionBatches final : public PlannedBatches {
 public:
  DetectionBatches(std::shared_ptr<const AnnotatedImages> images, const ImageConfig& config,
                   PixelStatistics statistics, const BatchOptions& options)
      : PlannedBatches(options),
        images_(std::move(images)),
        config_(config),
        statistics_(std::move(statistics)) {
    for (int64_t i = 0; i < images_->size(); ++i) {
      const auto size = size_to_fit(images_->shape(i), config_.size, config_.longest_side());
      areas_.push_back(size.height * size.width);
    }
  }

 private:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(areas_, options(), epoch); }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    std::vector<Image> images;
    std::vector<AnnotatedObjects> objects;
    const auto used = used_rows(std::ssize(examples));
    for (const int64_t example : examples) {
      // The loss is divided by the objects of all pictures, so those of unused pictures count, too.
      const auto pixels = used.has(std::ssize(images)) ? Pixels::wanted : Pixels::unwanted;
      auto one = picture(epoch, example, pixels);
      images.push_back(std::move(one.image));
      objects.push_back(std::move(one.objects));
    }
    Batch batch = batch_of_pictures(images, config_, statistics_);
    add_objects(objects, images, batch);
    batch.fields[fields::kImageNumbers] =
        torch::tensor(std::vector<int64_t>(examples.begin(), examples.end()), torch::kInt64);
    batch.tokens = std::ssize(examples);
    return batch;
  }

  enum class Pixels { wanted, unwanted };

  AnnotatedImage picture(int64_t epoch, int64_t example, Pixels pixels) const {
    AnnotatedImage picture;
    if (pixels == Pixels::wanted) {
      picture.image = images_->image(example);
    } else {
      picture.image.shape = images_->shape(example);
      picture.image.shape.channels = config_.channels;
    }
    for (const auto& object : images_->objects(example))
      if (!object.is_crowd) picture.objects.push_back(object);
    if (!shuffled()) return fitted(std::move(picture), config_);
    CounterRandom random(
        {options().seed, kAugmentPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(example)});
    return augmented(std::move(picture), config_, random);
  }

  std::shared_ptr<const AnnotatedImages> images_;
  ImageConfig config_;
  PixelStatistics statistics_;
  std::vector<int64_t> areas_;  // of the pictures as they are evaluated
};

}  // namespace

Batch batch_of_pictures(const std::vector<Image>& pictures, const ImageConfig& config,
                        const PixelStatistics& statistics) {
  int64_t height = config.padding == PicturePadding::square ? config.longest_side() : 1, width = height;
  for (const auto& picture : pictures) {
    height = std::max(height, picture.shape.height);
    width = std::max(width, picture.shape.width);
  }
  const auto B = std::ssize(pictures);
  auto images = torch::zeros({B, pictures.front().shape.channels, height, width});
  auto sizes = torch::empty({B, 2}, torch::kInt64);
  for (int64_t b = 0; b < B; ++b) {
    const auto& picture = pictures[static_cast<size_t>(b)];
    const auto& shape = picture.shape;
    sizes[b][0] = shape.height;
    sizes[b][1] = shape.width;
    if (picture.pixels.empty()) continue;
    auto numbers = torch::empty({shape.channels, shape.height, shape.width});
    write_normalised(picture, statistics, numbers.mutable_data_ptr<float>());
    images[b].narrow(1, 0, shape.height).narrow(2, 0, shape.width).copy_(numbers);
  }
  Batch batch;
  batch.fields = {{fields::kImages, std::move(images)}, {fields::kImageSizes, std::move(sizes)}};
  return batch;
}

std::unique_ptr<BatchSource> detection_batches(std::shared_ptr<const AnnotatedImages> images,
                                               const ImageConfig& config, const PixelStatistics& statistics,
                                               const BatchOptions& options) {
  return std::make_unique<DetectionBatches>(std::move(images), config, statistics, options);
}

}  // namespace zoo
