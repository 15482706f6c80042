#include "tokenizers/sentencepiece/trainer.h"

#include <algorithm>

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"

namespace zoo {
namespace {

/// Gives the lines of a corpus to SentencePiece's trainer.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t next_ = 0;
};

}  // namespace

std::string train_sentencepiece(const std::unordered_map<std::string, std::string>& options,
                                const std::vector<std::string>& lines) {
  const auto outcome = run_in_child([&] {
    Lines all(lines);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(options, &all, &model);
    if (!status.ok()) throw DataError(status.ToString());
    return model;
  });
  if (outcome.value) return *outcome.value;
  throw DataError(excerpt(outcome.output, 1000));
}

}  // namespace zoo
