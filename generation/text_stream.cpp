#include "generation/text_stream.h"

#include <utility>

#include "models/inference_scope.h"

namespace zoo {

struct TextStream::State {
  explicit State(TextStreamSource from)
      : source(std::move(from)),
        search(*source.model->generative(), source.model->device(), {source.prompt}, {{.draw = source.draw}},
               source.processors, *source.sampler, source.limits),
        decoder(source.decoder) {}

  const TextStreamSource source;
  SamplingSearch search;
  ContinuationDecoder decoder;
};

TextStream::TextStream(TextStreamSource source) : state_(std::make_unique<State>(std::move(source))) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;

TextStream::Iterator TextStream::begin() {
  advance();
  return Iterator(this);
}

const Hypothesis& TextStream::output() const { return state_->search.outputs().front(); }

void TextStream::advance() {
  const InferenceScope scope(*state_->source.model);
  while (state_->search.step()) {
    piece_ = state_->decoder.push(output().ids.back());
    if (!piece_.empty()) return;
  }
  piece_ = state_->decoder.finish();
  finished_ = piece_.empty();
}

}  // namespace zoo
