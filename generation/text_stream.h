#pragma once
// Text while it is generated: a lazy range of pieces.

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

#include "generation/scheduler.h"

namespace zoo {

/// The arguments of a TextStream; the Generator fills them in.
struct TextStreamSource {
  Model& model;
  ContinuationDecoder decoder;  // before the first token
  GenerationRequest request;    // with one output
};

/// A single pass over the pieces of one output. Joined, they are the text that Generator::generate() gives.
class TextStream {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(TextStream* stream) : stream_(stream) {}
    const std::string& operator*() const { return stream_->piece_; }
    Iterator& operator++() {
      stream_->advance();
      return *this;
    }
    void operator++(int) { stream_->advance(); }
    bool operator==(std::default_sentinel_t) const { return stream_->finished_; }

   private:
    TextStream* stream_;
  };

  explicit TextStream(TextStreamSource source);
  ~TextStream();
  TextStream(TextStream&&) noexcept;

  /// Generates tokens up to the first piece of text.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }
  /// The tokens so far.
  const Hypothesis& output() const;

 private:
  void advance();

  struct State;
  std::unique_ptr<State> state_;
  std::string piece_;
  bool finished_ = false;
};

}  // namespace zoo
