#pragma once
// Text as it is generated: a range of pieces, each made when it is asked for.

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

#include "generation/search.h"

namespace zoo {

/// Turns generated ids into text that continues a prompt: with the blank between the words where the
/// vocabulary has one, and with a character whose first bytes are the prompt's.
class ContinuationDecoder {
 public:
  ContinuationDecoder(const Tokenizer& tokenizer, std::span<const int64_t> prompt);
  std::string push(int64_t id) { return decoder_.push(id); }
  std::string finish() { return decoder_.finish(); }

 private:
  StreamDecoder decoder_;
};

/// What a stream generates from; the Generator puts it together.
struct TextStreamSource {
  std::shared_ptr<Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  TokenIds prompt;   // as the model reads it
  TokenIds context;  // what the text continues
  LogitsProcessors processors;
  std::unique_ptr<const Sampler> sampler;
  SearchLimits limits;
  Draw draw;
};

/// A single pass over the pieces of one output; end to end they are the text that Generator::generate()
/// gives.
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

  /// Generates up to the first piece of text.
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
