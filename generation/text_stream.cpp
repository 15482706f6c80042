#include "generation/text_stream.h"

#include <utility>

#include "models/inference_scope.h"

namespace zoo {

struct TextStream::State {
  explicit State(TextStreamSource from)
      : source(std::move(from)),
        scheduler(*source.model.generative(), source.model.device()),
        request(scheduler.submit(source.request)),
        decoder(source.decoder) {}

  const TextStreamSource source;
  Scheduler scheduler;
  const size_t request;
  ContinuationDecoder decoder;
  size_t n_decoded = 0;  // tokens
};

TextStream::TextStream(TextStreamSource source) : state_(std::make_unique<State>(std::move(source))) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;

TextStream::Iterator TextStream::begin() {
  advance();
  return Iterator(this);
}

const Hypothesis& TextStream::output() const { return state_->scheduler.outputs(state_->request).front(); }

void TextStream::advance() {
  const InferenceScope scope(state_->source.model);
  while (state_->scheduler.step()) {
    state_->scheduler.require(state_->request);
    const auto& ids = output().ids;
    piece_.clear();
    while (state_->n_decoded < ids.size()) piece_ += state_->decoder.push(ids[state_->n_decoded++]);
    if (!piece_.empty()) return;
  }
  piece_ = state_->decoder.finish();
  finished_ = piece_.empty();
}

}  // namespace zoo
