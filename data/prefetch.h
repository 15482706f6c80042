#pragma once
// Makes batches before they are needed, so that a model does not wait for the decoding of images.

#include <memory>

#include "data/batch_source.h"

namespace zoo {

/// The batches of `source`. While a caller works with one batch, another thread makes the one that it expects
/// (BatchSource::expect).
std::unique_ptr<BatchSource> prefetched(std::unique_ptr<BatchSource> source);

}  // namespace zoo
