// The task choices, and choices beside a language model's loss. (The rule of lm-evaluation-harness:
// tests/parity/choices_test.py.)

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "tasks/examples.h"
#include "tasks/task.h"
#include "tasks/text/choice_scores.h"
#include "tests/support/errors.h"
#include "tests/support/fake_models.h"
#include "tests/support/text_models.h"
#include "tests/support/training.h"
#include "text/choice_questions.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// After "a" comes "b" with probability 1/2 and "c" with 1/4; after anything else every token is as likely.
class ToldWriter final : public Model, public BigramModel {
 public:
  explicit ToldWriter(torch::Tensor table) : BigramModel(std::move(table)) {
    register_buffer("nothing", torch::zeros({1}));
  }
  torch::Tensor features(const Batch&) override { return {}; }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return 1'000'000; }
  torch::Tensor hidden_states(const Batch&) override { return {}; }
  void attention_maps(const Batch&, AttentionMaps&) override {}
  GenerativeModel* generative() override { return this; }
};

class Choices : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& lines) { world_.dir().write("data/" + name, lines); }
  std::unique_ptr<Task> task(std::vector<std::string> overrides, const char* of = "choices") const {
    for (const char* const own : {"model.architecture=decoder", "data.train=train.jsonl"})
      overrides.insert(overrides.begin(), own);
    return task_of_new_run(world_.experiment(of, overrides));
  }

  TinyWorld world_;
};

std::vector<ChoiceQuestion> read(const TinyWorld& world, const std::string& lines) {
  world.dir().write("data/asked.jsonl", lines);
  return read_questions({"asked.jsonl"});
}

TEST_F(Choices, AreReadFromLinesOfJson) {
  const auto questions =
      read(world_, R"({"context": "Is it?\nAnswer:", "choices": ["yes", "no"], "answer": 1, "id": 7}

{"context": "", "choices": [" a", "é", "c"], "answer": 2}
)");
  ASSERT_EQ(questions.size(), 2U);
  EXPECT_EQ(questions[0].context, "Is it?\nAnswer:");
  EXPECT_EQ(questions[0].right_choice(), "no");
  EXPECT_THAT(questions[0].place, HasSubstr("asked.jsonl:1"));
  EXPECT_THAT(questions[1].choices, ElementsAre(" a", "é", "c"));
  EXPECT_EQ(questions[1].answer, 2);
  EXPECT_THAT(questions[1].place, HasSubstr("asked.jsonl:3"));
}

TEST_F(Choices, ThatAreNoneAreNamedWithTheirLine) {
  const std::string good = R"({"context": "a", "choices": ["b", "c"], "answer": 0})";
  const auto message = [&](const std::string& line) {
    return message_of<DataError>([&] { read(world_, good + "\n" + line + "\n"); });
  };
  for (const auto& [line, problem] : std::vector<std::pair<const char*, const char*>>{
           {"[]", "no \"context\""},
           {R"({"choices": ["b", "c"], "answer": 0})", "no \"context\""},
           {R"({"context": 1, "choices": ["b", "c"], "answer": 0})", "context is not a text"},
           {R"({"context": "a", "choices": ["b"], "answer": 0})", "at least two texts"},
           {R"({"context": "a", "choices": ["b", ""], "answer": 0})", "none of them empty"},
           {R"({"context": "a", "choices": "bc", "answer": 0})", "at least two texts"},
           {R"({"context": "a", "choices": ["b", "c"], "answer": 2})", "a number from 0 to 1"},
           {R"({"context": "a", "choices": ["b", "c"], "answer": -1})", "a number from 0 to 1"},
           {R"({"context": "a", "choices": ["b", "c"], "answer": "1"})", "a number from 0 to 1"},
           {R"({"context": "a", "choices": ["b", "c"], "answer": 0.5})", "a number from 0 to 1"},
           {"context", "JSON"}}) {
    SCOPED_TRACE(line);
    EXPECT_THAT(message(line), AllOf(HasSubstr("asked.jsonl:2: "), HasSubstr(problem)));
  }
  EXPECT_THAT(message_of<DataError>([&] { read(world_, "\n"); }), HasSubstr("there are no questions"));
  write("asked.txt", good);
  EXPECT_THAT(message_of<DataError>([&] { read_questions({"asked.txt"}); }), HasSubstr("NAME.jsonl"));
}

TEST_F(Choices, StandBehindOthersWithTheirAnswers) {
  write("shots.jsonl", R"({"context": "1", "choices": ["x", "y"], "answer": 1}
{"context": "2", "choices": ["x", "y"], "answer": 0}
{"context": "3", "choices": ["x", "y"], "answer": 0}
)");
  DataConfig data;
  data.train = {"nowhere.jsonl"};
  EXPECT_TRUE(read_shots(data).empty()) << "nothing is read";
  data.choices.shots = 2;
  data.choices.shots_from = {"shots.jsonl"};
  auto shots = read_shots(data);
  const ChoiceQuestion question{.context = "4", .choices = {"x", "y"}};
  EXPECT_EQ(context_with_shots(question, shots, data.choices), "1 y\n\n2 x\n\n4");
  EXPECT_EQ(context_with_shots(shots[0], shots, data.choices), "2 x\n\n3 x\n\n1") << "not its own answer";
  data.choices.delimiter = "=", data.choices.separator = ";";
  EXPECT_EQ(context_with_shots(question, shots, data.choices), "1=y;2=x;4");
  data.choices.shots = 4;
  EXPECT_THAT(message_of<DataError>([&] { read_shots(data); }),
              HasSubstr("3 questions, and data.choices.shots asks for 4"));
  data.choices = {};
  data.choices.shots = 1;
  data.train = {"shots.jsonl"};
  EXPECT_EQ(read_shots(data).size(), 2U) << "from the training data";
}

TEST_F(Choices, AreTokensBehindTheirContext) {
  const auto tokenizer = letters();
  const auto tokens = [&](const char* context, const char* choice, ChoiceReader reader) {
    const auto found = choice_tokens(context, choice, *tokenizer, reader);
    return tokenizer->decode(found.prompt) + "|" + tokenizer->decode(found.ids);
  };
  const ChoiceReader whole{.most = 100};
  EXPECT_EQ(tokens("abc", "de", whole), "abc|de");
  // What is too long loses its beginning: the last token of a choice is not read.
  EXPECT_EQ(tokens("abcdefgh", "ij", {.most = 4}), "fgh|ij");
  EXPECT_EQ(tokens("abcdefgh", "ijcd", {.most = 4}), "h|ijcd");
  EXPECT_THAT(message_of<DataError>([&] { tokens("a", "bcdef", {.most = 4}); }),
              HasSubstr("a choice has 5 tokens, and the model reads 4"));
  EXPECT_EQ(choice_tokens("", "ab", *tokenizer, whole).prompt, TokenIds{tokenizer->special().bos});
  const auto answer = choice_tokens("abc", "de", *tokenizer, {.use = ContextUse::answered, .most = 4});
  EXPECT_EQ(tokenizer->decode(answer.ids), "de");
  auto source = tokenizer->encode("abc");
  source.push_back(tokenizer->special().eos);
  EXPECT_EQ(answer.prompt, source);
  EXPECT_EQ(
      choice_tokens("abc", "de", *tokenizer, {.use = ContextUse::answered_in_sequence, .most = 4}).prompt,
      (TokenIds{source.end() - 2, source.end()}))
      << "both stand in one sequence";
}

TEST_F(Choices, AreMeasuredByTheirLikelihood) {
  write("train.jsonl", R"({"context": "a", "choices": ["b", "cab"], "answer": 0})");
  // p(b | a) = 1/2, p(c | a) = 1/4, others after "a" and all after others 1/n.
  write("valid.jsonl", R"({"context": "ca", "choices": ["b", "c"], "answer": 0}
{"context": "a", "choices": ["c", "b"], "answer": 0}
{"context": "a ", "choices": ["ccb", "b"], "answer": 1}
)");
  const auto made = task({"data.valid=valid.jsonl", "data.choices.delimiter=\"\"", "training.batch_size=2"});
  const auto& tokenizer = made->tokenizer();
  const int64_t n = tokenizer.vocab_size();
  const auto id = [&](const char* text) { return tokenizer.encode(text).at(0); };
  auto table = torch::full({n, n}, 1.0 / static_cast<double>(n), torch::kDouble);
  const double rest = 0.25 / static_cast<double>(n - 2);
  table[id("a")].fill_(rest);
  table[id("a")][id("b")].fill_(0.5);
  table[id("a")][id("c")].fill_(0.25);
  ToldWriter model(table.log().to(torch::kFloat));
  std::vector<ExampleScore> examples;
  const auto metrics = made->evaluate(model, Split::valid, {.examples = &examples});
  ASSERT_EQ(examples.size(), 3U);
  const double any = std::log(static_cast<double>(n));
  EXPECT_NEAR(examples[0].choice->log_likelihoods[0], -std::log(2), 1e-6);
  EXPECT_NEAR(examples[0].choice->log_likelihoods[1], -std::log(4), 1e-6);
  EXPECT_EQ(examples[1].right, false);
  // The blank belongs to the choice: after "a" it is rare, and after a blank all are alike.
  EXPECT_NEAR(examples[2].choice->log_likelihoods[1], std::log(rest) - any, 1e-5);
  EXPECT_NEAR(examples[2].choice->log_likelihoods[0], std::log(rest) - 3 * any, 1e-5);
  EXPECT_EQ(examples[2].choice->chosen, 1);
  EXPECT_EQ(examples[2].choice->chosen_by_length,
            (std::log(rest) - 3 * any) / 3 > std::log(rest) - any ? 0 : 1);
  EXPECT_EQ(examples[2].choice->chosen_by_length, 0) << "it has three characters";
  EXPECT_EQ(examples[2].targets, 2);
  EXPECT_DOUBLE_EQ(metrics.at("acc"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("acc_norm"), 1.0 / 3);
  EXPECT_NEAR(metrics.at("acc_stderr"), std::sqrt(2.0 / 3 * (1.0 / 3) / 2), 1e-12);
  const double nats = std::log(2) + std::log(4) - std::log(rest) + any;
  EXPECT_NEAR(metrics.at("loss"), nats / 4, 1e-5);
  EXPECT_EQ(metrics.at("tokens"), 4);
  EXPECT_NEAR(metrics.at("bits_per_byte"), nats / std::numbers::ln2 / 3, 1e-5);
  EXPECT_EQ(made->evaluate(model, Split::valid), metrics) << "to look at examples changes nothing";
  EXPECT_DOUBLE_EQ(made->evaluate(model, Split::valid, {.max_batches = 1}).at("acc"), 1.0 / 2);
  const auto line = nlohmann::json::parse(to_json_lines({examples[2]}));
  EXPECT_EQ(line["input"], "a ");
  EXPECT_EQ(line["target"], "b");
  EXPECT_EQ(line["prediction"], "b");
  EXPECT_EQ(line["answer"], 1);
  EXPECT_EQ(line["chosen"], 1);
  EXPECT_EQ(line["chosen_norm"], 0);
  EXPECT_EQ(line["log_likelihoods"].size(), 2U);
}

TEST_F(Choices, ThatAreRightAreWhatIsLearnt) {
  write("train.jsonl", R"({"context": "a sun", "choices": ["wind", "rain"], "answer": 1}
{"context": "the very long way to the moon and the bird", "choices": ["tree", "sea"], "answer": 0}
)");
  for (const std::string architecture : {"decoder", "encoder_decoder"}) {
    SCOPED_TRACE(architecture);
    const auto made = task({"data.valid=train.jsonl", "model.architecture=" + architecture,
                            "data.sequence_length=16", "training.batch_size=1"});
    const auto batch = made->batches(Split::valid).batch(0, 0);
    const auto text = [&](const torch::Tensor& ids) {
      const auto values = ids.contiguous();
      return made->tokenizer().decode(
          std::span(values.const_data_ptr<int64_t>(), static_cast<size_t>(values.numel())));
    };
    EXPECT_EQ(text(batch.targets), " rain");
    EXPECT_EQ(text(batch.input.ids.flatten()), architecture == "decoder" ? "a sun rai" : "a sun");
    const auto cut = made->batches(Split::valid).batch(0, 1);
    EXPECT_EQ(text(cut.targets), " tree");
    EXPECT_EQ(text(cut.input.ids.flatten()),
              architecture == "decoder" ? "and the bird tre" : "on and the bird");
    EXPECT_THAT(made->notes(),
                Contains(HasSubstr("1 of 2 questions for valid are longer than data.sequence_length, 16")));
  }
}

TEST_F(Choices, StandBesideTheLossOfALanguageModel) {
  write("asked.jsonl", R"({"context": "sun", "choices": ["moon", "star"], "answer": 1}
{"context": "sea", "choices": ["moon", "star"], "answer": 0}
)");
  const std::vector<std::string> asks = {"data.train=text.txt", "data.test=text.txt",
                                         "data.choices.files=asked.jsonl"};
  const auto made = task(asks, "language_modeling");
  torch::manual_seed(1);
  const auto model = initialized_model(made->experiment(), *made);
  const auto metrics = made->evaluate(*model, Split::valid);
  EXPECT_GE(metrics.at("acc"), 0);
  EXPECT_TRUE(metrics.contains("acc_norm") && metrics.contains("choices_bits_per_byte"));
  EXPECT_FALSE(made->evaluate(*model, Split::test).contains("acc")) << "only beside the validation data";
  const auto run = world_.path("run");
  auto keeps = asks;
  keeps.insert(keeps.end(), {"training.best_by=choices_bits_per_byte", "model.architecture=decoder"});
  train(world_.experiment("language_modeling", keeps), {.run_dir = run});
  EXPECT_TRUE(read_training_state(*newest_checkpoint(run)).best_step > 0);

  const auto message = [&](const std::vector<std::string>& overrides) {
    return message_of<ConfigError>([&] { world_.experiment("language_modeling", overrides); });
  };
  EXPECT_THAT(message({"training.best_by=acc"}), HasSubstr("acc needs questions"));
  EXPECT_THAT(message({"data.choices.shots=2"}), HasSubstr("data.choices.files"));
  EXPECT_THAT(message({"data.choices.files=asked.jsonl", "data.choices.shots=2"}),
              HasSubstr("data.choices.shots_from"));
  EXPECT_THAT(message({"data.choices.files=asked.jsonl", "data.choices.shots_from=asked.jsonl"}),
              HasSubstr("data.choices.shots"));
}

}  // namespace
}  // namespace zoo::testing
