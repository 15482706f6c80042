#include "data/batch_source.h"

namespace zoo {

BatchSequence next_batches(BatchSource& source, BatchPosition& position, int64_t count) {
  BatchSequence result;
  for (int64_t i = 0; i < count; ++i) {
    if (position.index >= source.n_batches(position.epoch))
      position = {.epoch = position.epoch + 1, .index = 0};
    result.batches.push_back(source.batch(position.epoch, position.index));
    result.positions.push_back(position);
    ++position.index;
  }
  return result;
}

}  // namespace zoo
