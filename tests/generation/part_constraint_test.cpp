// Outputs that are free until they begin a part that has a form.

#include "generation/constraints/part_constraint.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "generation/constraints/regular_expression.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

/// A vocabulary of given texts. The last but one token has no text of its own, the last one ends a text.
class TextList final : public Tokenizer {
 public:
  explicit TextList(std::vector<std::string> texts) : texts_(std::move(texts)) {
    texts_.insert(texts_.end(), {"", ""});
    special_.eos = vocab_size() - 1;
  }
  TokenIds encode(std::string_view) const override { return {}; }
  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) text += texts_.at(static_cast<size_t>(id));
    return text;
  }
  TokenText token_text(int64_t id) const override {
    const auto& text = texts_.at(static_cast<size_t>(id));
    return {text, text};
  }
  std::string label(int64_t id) const override { return texts_.at(static_cast<size_t>(id)); }
  int64_t vocab_size() const override { return std::ssize(texts_); }
  bool keeps_text() const override { return true; }
  const SpecialTokens& special() const override { return special_; }
  void save(const std::filesystem::path&) const override {}

 private:
  std::vector<std::string> texts_;
  SpecialTokens special_;
};

class PartsOfAnOutput : public ::testing::Test {
 protected:
  /// The tokens that may follow, as their texts; "all" if every token may. "." is the end token.
  std::string after(const PartForm& form, const TokenIds& ids, const ShownTokens& shown = {}) const {
    const PartConstraint parts(std::make_shared<TextConstraint>(form.texts(), vocabulary_, TokenIds(), shown),
                               form);
    WorkLimit work(1'000'000);
    const auto allowed = parts.allowed({}, ids, work);
    if (!allowed.defined()) return "all";
    std::string result;
    for (int64_t id = 0; id < vocabulary_.vocab_size(); ++id) {
      const auto text = id == end_ ? "." : id == mark_ ? "MARK" : vocabulary_.label(id);
      if (allowed[id].item<bool>()) result += (result.empty() ? "" : " ") + text;
    }
    return result;
  }

  // Ids from 0 on. A text is written only if each of its characters is a token.
  TextList vocabulary_{{"<", "t>", "a", "b", ">ab", ">x", "!", " ", "t", ">", "@", "m"}};
  const int64_t mark_ = 12, end_ = 13;
  PartForm tags_{
      .mark = "<t>", .texts = [] { return parse_regular_expression("<t>(a|b)b*!"); }, .name = "tags"};
};

TEST_F(PartsOfAnOutput, AreFreeBeforeAndBehindAPart) {
  EXPECT_EQ(after(tags_, {}), "all");
  EXPECT_EQ(after(tags_, {2, 3, 0}), "all");
  EXPECT_EQ(after(tags_, {2, 0, 1}), "a b");
  EXPECT_EQ(after(tags_, {0, 1, 2}), "b !");
  EXPECT_EQ(after(tags_, {0, 1, 2, 6}), "all");
  EXPECT_EQ(after(tags_, {0, 1, 2, 6, 7, 0, 1}), "a b");
}

TEST_F(PartsOfAnOutput, DoNotBeginWithATokenThatLeadsNowhere) {
  const TextList vocabulary({"<", "t", "a", "b", ">ab", ">x", "!", ">", "!>", "<t>x", "<t>a!x"});
  const PartConstraint parts(std::make_shared<TextConstraint>(tags_.texts(), vocabulary, TokenIds()), tags_);
  WorkLimit work(1'000'000);
  const auto is_allowed = [&](const TokenIds& ids, int64_t id) {
    const auto allowed = parts.allowed({}, ids, work);
    return !allowed.defined() || allowed[id].item<bool>();
  };
  EXPECT_TRUE(is_allowed({0, 1}, 4));
  EXPECT_FALSE(is_allowed({0, 1}, 5));
  EXPECT_TRUE(is_allowed({0, 1}, 7));
  EXPECT_TRUE(is_allowed({0}, 5));  // no mark ends there
  EXPECT_FALSE(is_allowed({2}, 9));
  EXPECT_TRUE(is_allowed({2}, 10));  // behind a whole part the text is free
}

TEST_F(PartsOfAnOutput, MayBeginAtTheStartOnlyAndBeTheEnd) {
  auto form = tags_;
  form.begins = PartForm::Begins::at_start;
  form.then = PartForm::Then::end;
  EXPECT_EQ(after(form, {0, 1}), "a b");
  EXPECT_EQ(after(form, {7, 0, 1}), "a b");
  EXPECT_EQ(after(form, {2, 0, 1}), "all");
  EXPECT_EQ(after(form, {2, 0, 8}), "all") << "also what begins with the end of a mark";
  EXPECT_EQ(after(form, {0, 1, 2, 6}), ".");
}

TEST_F(PartsOfAnOutput, AMarkWithinAPartBeginsNoOther) {
  const PartForm form{
      .mark = "<t>", .texts = [] { return parse_regular_expression("<t>(a<t>!|!b)"); }, .name = "marks"};
  EXPECT_EQ(after(form, {0, 1, 2, 0, 1}), "!");
  EXPECT_EQ(after(form, {0, 1, 2, 0, 1, 6}), "all");
  EXPECT_EQ(after(form, {0, 1, 2, 0, 1, 6, 0, 1, 6}), "b");
}

TEST_F(PartsOfAnOutput, BeginAtOnceWithoutAMark) {
  const PartForm form{
      .then = PartForm::Then::end, .texts = [] { return parse_regular_expression("ab*"); }, .name = "whole"};
  EXPECT_EQ(after(form, {}), "a");
  EXPECT_EQ(after(form, {2}), "b .");
}

TEST_F(PartsOfAnOutput, BeginWithATokenThatIsShown) {
  const PartForm form{
      .mark = "@m", .texts = [] { return parse_regular_expression("@m(a|b@m)!"); }, .name = "shown"};
  const ShownTokens shown{{.id = mark_, .text = "@m"}};
  EXPECT_EQ(after(form, {2}, shown), "all");
  EXPECT_EQ(after(form, {mark_}, shown), "a b");
  EXPECT_EQ(after(form, {mark_, 3}, shown), "@ MARK");
  EXPECT_EQ(after(form, {mark_, 3, mark_}, shown), "!");
}

}  // namespace
}  // namespace zoo
