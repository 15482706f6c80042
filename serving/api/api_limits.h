#pragma once
// What a request may ask for.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace zoo {

struct ApiLimits {
  int64_t most_tokens = 4096;  // of one output
  int64_t most_prompts = 256;  // of a request
  int64_t most_outputs = 256;  // of a request, over all prompts
  size_t most_texts = 256;     // to embed, to classify, to translate
  size_t most_images = 16;     // to classify
  int64_t most_image_pixels = int64_t{32} << 20;
  size_t most_recordings = 16;  // of a request; each is as long as its model reads at most, and has
  int64_t most_recording_samples = int64_t{32} << 20;  // in its file, over all channels
  int64_t most_residues = 512;                         // of a protein to fold, which takes a few seconds then
  // Of the responses that are kept.
  size_t most_responses = 4096;
  size_t response_bytes = 256 << 20;
  std::chrono::milliseconds response_age = std::chrono::hours(24);
};

}  // namespace zoo
