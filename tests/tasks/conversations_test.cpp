// Training on conversations: data.chat.

#include "text/conversations.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "io/files.h"
#include "tasks/examples.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"
#include "text/corpus.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

/// One token a letter; <s> begins the turn of the user, </s> ends one.
constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 6, "content": "<s>", "special": true},
  {"id": 7, "content": "</s>", "special": true}], "normalizer": null, "post_processor": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
  "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "merges": [],
  "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, ">": 4, "s": 5}}})";
constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'user' %}<s>{{ m.content }}{% else %}>{% generation %}{{ "
    "m.content "
    "}}</s>{% endgeneration %}{% endif %}{% endfor %}{{ '>' if add_generation_prompt }}";

class Conversations : public ::testing::Test {
 protected:
  Conversations() : root_("ZOO_DATA", world_.path("own").string()) {
    world_.dir().write("own/hub/tokenizer.json", kTokenizer);
    write_template(kTemplate);
    // The answer is the question backwards. What the user says is random.
    std::string lines;
    CounterRandom random({5});
    for (int i = 0; i < 400; ++i) {
      const std::string question = {letter(random), letter(random)};
      lines += fmt::format(
          R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
          "\n",
          question, std::string(question.rbegin(), question.rend()));
    }
    world_.dir().write("own/chats.jsonl", lines);
  }
  static char letter(CounterRandom& random) { return static_cast<char>('a' + random.below(4)); }
  void write_template(const std::string& text) const {
    world_.dir().write("own/hub/tokenizer_config.json",
                       nlohmann::json({{"eos_token", "</s>"}, {"chat_template", text}}).dump());
  }
  Experiment experiment(std::vector<std::string> overrides = {}) const {
    world_.dir().write("own/chats.yaml", R"(
task: language_modeling
data: {train: chats.jsonl, chat: true, sequence_length: 8, tokenizer: {type: hub, path: hub}}
model: {architecture: decoder, d_model: 32, n_layers: 2, n_heads: 4}
training: {steps: 500, batch_size: 16, threads: 1, evaluate_every: 100000, checkpoint_every: 100000}
generation: {temperature: 0}
)");
    return load_experiment(world_.path("own/chats.yaml"), overrides);
  }
  std::string problem(const std::vector<std::string>& overrides = {}) const {
    try {
      train(experiment(overrides), {.run_dir = world_.path("failed")});
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  TinyWorld world_;
  ScopedEnvironment root_;
};

TEST_F(Conversations, OnlyAnswersAreLearned) {
  const auto dir = world_.path("run");
  train(experiment(), {.run_dir = dir});
  const auto run = Run::open(dir);
  // The answers follow from the questions. Predicting the questions, too, would cost ln 4 for each letter.
  const auto metrics = run.evaluate(Split::valid);
  EXPECT_LT(metrics.at("loss"), 0.1);
  EXPECT_NEAR(metrics.at("bits_per_decoded_byte"), metrics.at("loss") * 3 / 6 / std::log(2),
              1e-6);  // "ab</s>": 3 tokens
  // Of single conversations, too, also where an answer is cut.
  for (const auto* const length : {"8", "5", "4"}) {
    const auto cut = experiment({fmt::format("data.sequence_length={}", length)});
    const auto task = task_with_vocabulary(cut, run.task().vocabulary());
    std::vector<ExampleScore> examples;
    const auto bits = task->evaluate(run.model(), Split::valid, {.examples = &examples});
    double loss = 0, bytes = 0;
    for (const auto& example : examples) {
      loss += example.loss;
      bytes += static_cast<double>(example.bytes);
    }
    EXPECT_NEAR(loss / std::log(2) / bytes, bits.at("bits_per_decoded_byte"), 1e-6) << length;
  }
  const auto samples = run.task().samples(run.model());
  ASSERT_EQ(samples.size(), 1u);
  ASSERT_EQ(samples[0].input.size(), 3u);  // the special token gives no text
  EXPECT_EQ(samples[0].output, std::string({samples[0].input[1], samples[0].input[0]}));
}

TEST_F(Conversations, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(problem({"task=masked_language_modeling", "model.architecture=encoder"}),
              HasSubstr("data.chat"));
  EXPECT_THAT(problem({"data.tokenizer.type=byte", "data.tokenizer.path=\"\""}),
              HasSubstr("data.chat: there is no chat template"));
  EXPECT_THAT(problem({"data.sequence_length=3", "data.train=chats.jsonl"}),
              HasSubstr("no conversation has an answer within data.sequence_length"));
  world_.dir().write("own/chats.jsonl", "{\"messages\": []}\n{\"text\": 1}\n{\"messages\": []}\n");
  EXPECT_THAT(problem({"data.valid=chats.jsonl"}), HasSubstr("chats.jsonl:2: this is no conversation"));
  world_.dir().write("own/chats.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n");
  EXPECT_THAT(problem({"data.valid=chats.jsonl"}),
              HasSubstr("no conversation has an answer of the assistant"));
  world_.dir().write("own/chats.txt", "hello\n");
  EXPECT_THAT(problem({"data.train=chats.txt"}), HasSubstr("conversations are read from NAME.jsonl"));
}

// Other collections call roles, questions and answers otherwise.
TEST_F(Conversations, OfOtherFormsAreMessages) {
  world_.dir().write(
      "own/forms.jsonl",
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "id": 1}
{"instruction": "a", "input": "c", "output": "b"}
{"instruction": "a", "input": "", "output": "b"}
{"prompt": "a", "completion": "b"}
{"prompt": "a", "response": "b"}
)");
  DataConfig data;
  data.chat = true;
  data.train = data.valid = {world_.path("own/forms.jsonl").string()};
  std::vector<std::string> questions;
  Corpus corpus(data);
  visit_conversations(corpus, Split::train, [&](const Conversation& one, const std::string&) {
    ASSERT_EQ(one["messages"].size(), 2u);
    EXPECT_EQ(one["messages"][0]["role"], "user");
    EXPECT_EQ(one["messages"][1], Conversation({{"role", "assistant"}, {"content", "b"}}));
    questions.push_back(one["messages"][0]["content"]);
  });
  EXPECT_EQ(questions, (std::vector<std::string>{"a", "a\n\nc", "a", "a", "a"}));
  for (const char* line :
       {R"({"conversations": [{"from": 1, "value": "a"}]})", R"({"prompt": 1, "completion": "b"})"}) {
    world_.dir().write("own/forms.jsonl", line);
    Corpus wrong(data);
    EXPECT_THAT(
        testing::message_of<DataError>([&] { visit_conversations(wrong, Split::train, [](auto&&...) {}); }),
        HasSubstr("forms.jsonl:1: this is no conversation"));
  }
}

/// What the cache gives, so that a test can see whether something was read from it.
class CachedConversations : public Conversations {
 protected:
  TokenizedConversations tokenized() const {
    const auto tokenizer =
        make_hub_tokenizer(read_hub_files(world_.path("own/hub"), Follow::nothing), {.eos = 7});
    Corpus corpus(experiment().data);
    return tokenize_conversations(corpus, Split::train, *tokenizer);
  }
  std::vector<std::filesystem::path> files() const {
    const std::filesystem::directory_iterator all(world_.path("cache"));
    return {begin(all), end(all)};
  }
  static void expect_equal(const TokenizedConversations& a, const TokenizedConversations& b) {
    EXPECT_EQ(a.tokens.stored_ids(), b.tokens.stored_ids());
    EXPECT_EQ(a.answers.stored_ids(), b.answers.stored_ids());
    EXPECT_EQ(a.tokens.n_rows(), b.tokens.n_rows());
    EXPECT_EQ(a.answer_bytes, b.answer_bytes);
  }

  ScopedEnvironment cache_{"ZOO_CACHE", world_.path("cache").string()};
};

TEST_F(CachedConversations, AreReadAgain) {
  const auto first = tokenized();
  ASSERT_EQ(files().size(), 3u);
  expect_equal(tokenized(), first);
  // The tokens come from the file: other ones there are taken for them.
  for (const auto& path : files()) {
    const auto key = path.stem().string();
    if (open_store(path, key)->stored_ids() != first.tokens.stored_ids()) continue;
    write_store(path, key, {TokenStore::from_rows({{0, 1, 2}})});
  }
  EXPECT_EQ(tokenized().tokens.row(0), (TokenIds{0, 1, 2}));
  // A damaged file is none, and is written again.
  for (const auto& path : files()) write_file_atomically(path, "damaged");
  expect_equal(tokenized(), first);
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(CachedConversations, AreSharedBySplits) {
  const auto tokenizer =
      make_hub_tokenizer(read_hub_files(world_.path("own/hub"), Follow::nothing), {.eos = 7});
  Corpus corpus(experiment({"data.valid_fraction=0.25"}).data);
  std::vector<std::string> places;
  for (const auto split : {Split::train, Split::valid}) {
    const auto n = split == Split::train ? 300 : 100;
    visit_conversations(corpus, split, [&](const auto&, const auto& place) { places.push_back(place); });
    EXPECT_EQ(tokenize_conversations(corpus, split, *tokenizer).tokens.n_rows(), n);
  }
  EXPECT_EQ(places.size(), 400u);
  std::ranges::sort(places);
  EXPECT_TRUE(std::ranges::unique(places).empty()) << "one is for training and for validation";
  EXPECT_EQ(files().size(), 6u);
}

TEST_F(CachedConversations, DependOnTheTemplateAndTheTexts) {
  const auto first = tokenized();
  write_template(std::string(kTemplate) + "s");
  EXPECT_EQ(tokenized().tokens.row_length(0), first.tokens.row_length(0) + 1);
  EXPECT_EQ(files().size(), 6u);
  write_template(kTemplate);
  world_.dir().write("own/chats.jsonl", R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}]})");
  auto lines = read_file(world_.path("own/chats.jsonl"));
  std::erase(lines, '\n');
  world_.dir().write("own/chats.jsonl", lines + "\n" + lines + "\n");
  EXPECT_EQ(tokenized().tokens.row(0), (TokenIds{6, 0, 4, 1, 7}));
}

}  // namespace
}  // namespace zoo::testing
