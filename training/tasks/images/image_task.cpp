#include "training/tasks/images/image_task.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

void describe_n_classes(ConfigVisitor& v, std::optional<int64_t>& n_classes) {
  v.field(
      "n_classes", n_classes,
      "Number of classes; default: as many as the training data have. With it, `zoo inspect` needs no data.",
      Limits::between(1, 1 << 20));
}

void require_n_classes(std::optional<int64_t> wanted, const Vocabulary& vocabulary) {
  const auto n_labels = std::ssize(vocabulary.labels);
  if (wanted && *wanted != n_labels) {
    throw DataError(fmt::format("the training data have {} classes, but task.n_classes is {}: leave it out",
                                n_labels, *wanted));
  }
}

ModelPurpose image_purpose(const Experiment& experiment, HeadKind head, int64_t n_classes) {
  const auto& images = experiment.data.images;
  const int64_t side = images.padding == PicturePadding::square ? images.longest_side() : images.size;
  return {.head = head,
          .n_classes = n_classes,
          .image = {.channels = images.channels, .height = side, .width = side}};
}

}  // namespace zoo
