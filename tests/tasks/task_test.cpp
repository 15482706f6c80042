#include "tasks/task.h"

#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "tasks/evaluation.h"
#include "tasks/text/label_likelihood.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"
#include "text/corpus.h"

namespace zoo::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::shared_ptr<Model> model_of(const Task& task) {
  torch::manual_seed(1);
  return initialized_model(task.experiment(), task);
}

TEST(Task, OneStreamOfCharactersHasNoSpecialTokens) {
  const TinyWorld world;
  const auto plain = task_of_new_run(world.experiment("language_modeling"));
  EXPECT_EQ(plain->tokenizer().special().eos, -1);
  const auto documents = task_of_new_run(world.experiment("language_modeling", {"data.documents=line"}));
  EXPECT_GE(documents->tokenizer().special().eos, 0);
  EXPECT_GT(documents->tokenizer().vocab_size(), plain->tokenizer().vocab_size());
}

TEST(Task, UntrainedModelsScoreAsChance) {
  const TinyWorld world;
  const std::vector<std::pair<const char*, std::vector<std::string>>> all = {
      {"language_modeling", {}},
      {"language_modeling", {"model.architecture=encoder_decoder"}},
      {"masked_language_modeling", {}},
      {"text_to_text", {}},
      {"text_to_text", {"model.architecture=decoder", "model.max_positions=48"}},
      {"text_classification", {}},
      {"token_classification", {}},
      {"token_classification", {"model.architecture=decoder"}}};
  for (const auto& [name, overrides] : all) {
    SCOPED_TRACE(fmt::format("{} {}", name, overrides.size()));
    const auto task = task_of_new_run(world.experiment(name, overrides));
    const auto model = model_of(*task);
    const auto metrics = task->evaluate(*model, Split::valid);
    const auto purpose = task->purpose();
    const double chance =
        std::log(static_cast<double>(purpose.n_classes > 0 ? purpose.n_classes : purpose.vocab_size));
    EXPECT_NEAR(metrics.at("loss"), chance, 0.25 * chance);
    EXPECT_DOUBLE_EQ(metrics.at("perplexity"), std::exp(metrics.at("loss")));
    EXPECT_EQ(task->evaluate(*model, Split::valid), metrics);  // nothing random
    EXPECT_LE(task->evaluate(*model, Split::valid, {.max_batches = 1}).at("tokens"), metrics.at("tokens"));
    EXPECT_EQ(to_text(task->samples(*model)), to_text(task->samples(*model)));
    EXPECT_FALSE(task->samples(*model).empty());
  }
}

TEST(Task, MaskedSamplesShowWordsNotMarks) {
  const TinyWorld world;
  const auto task = task_of_new_run(
      world.experiment("masked_language_modeling",
                       {"data.tokenizer={type: sentencepiece, vocab_size: 31, byte_fallback: false}",
                        "data.mask_probability=0.5"}));
  const auto model = model_of(*task);
  const auto samples = to_text(task->samples(*model));
  EXPECT_THAT(samples, ContainsRegex("\\[(sun|moon|star|sea|wind|rain|tree|bird)\\]"));
  EXPECT_THAT(samples, Not(HasSubstr("▁")));
}

TEST(Task, BitsPerByteCountBytesNotTokens) {
  const TinyWorld world;
  world.dir().write("data/text.txt", "äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß äöüß ");
  const auto task = task_of_new_run(world.experiment("language_modeling", {"data.valid_fraction=0.5"}));
  const auto model = model_of(*task);
  const auto metrics = task->evaluate(*model, Split::valid);
  const double bytes = static_cast<double>(read_documents(task->experiment().data, Split::valid)[0].size());
  const double tokens = static_cast<double>(
      task->tokenizer().encode(read_documents(task->experiment().data, Split::valid)[0]).size());
  EXPECT_GT(bytes, 1.7 * tokens);
  EXPECT_NEAR(metrics.at("bits_per_byte"), metrics.at("loss") / std::log(2.0) * tokens / bytes, 1e-9);
  EXPECT_EQ(metrics.at("tokens"), tokens - 1);
}

// Bytes that a tokenizer throws away are not predicted.
TEST(Task, BitsPerByteCountOnlyBytesThatAreGivenBack) {
  const TinyWorld world;
  const std::string tripled = "sun   and   moon   \nthe         sea\n";
  world.dir().write("data/once.txt", "sun and moon \nthe   sea\n");
  world.dir().write("data/thrice.txt", tripled);
  const auto measured = [&](const std::string& tokenizer, const std::string& file) {
    const auto task = task_of_new_run(
        world.experiment("language_modeling", {"data.tokenizer=" + tokenizer, "data.valid=" + file}));
    return task->evaluate(*model_of(*task), Split::valid);
  };
  const std::string nfkc = "{type: sentencepiece, vocab_size: 290, normalization: nfkc}";
  const auto once = measured(nfkc, "once.txt"), thrice = measured(nfkc, "thrice.txt");
  EXPECT_EQ(once.at("tokens"), thrice.at("tokens"));
  EXPECT_EQ(once.at("bits_per_decoded_byte"), thrice.at("bits_per_decoded_byte"));
  EXPECT_FALSE(once.contains("bits_per_byte"));
  const auto kept = measured("{type: sentencepiece, vocab_size: 290}", "thrice.txt");
  EXPECT_FALSE(kept.contains("bits_per_decoded_byte"));
  EXPECT_GT(kept.at("tokens"), once.at("tokens"));
  EXPECT_NEAR(
      kept.at("bits_per_byte"),
      kept.at("loss") / std::numbers::ln2 * (kept.at("tokens") + 1) / static_cast<double>(tripled.size()),
      1e-9);
}

TEST(Task, BitsPerByteDoNotCountUnknownCharacters) {
  const TinyWorld world;
  world.dir().write("data/strange.txt", "sun ☃☃ and ☃ rain\n");
  const auto task = task_of_new_run(
      world.experiment("language_modeling", {"data.documents=line", "data.valid=strange.txt"}));
  const auto metrics = task->evaluate(*model_of(*task), Split::valid);
  const double known = 14, tokens = known + 4;  // "sun  and  rain"; 3 unknown, eos
  EXPECT_NEAR(metrics.at("bits_per_byte"), metrics.at("loss") / std::numbers::ln2 * tokens / known, 1e-9);
}

TEST(Task, SpecialTokensAreLeftOutOnlyWhereTheTaskAllowsIt) {
  const TinyWorld world;
  const std::string pieces = "data.tokenizer={type: sentencepiece, vocab_size: 290";
  EXPECT_GE(task_of_new_run(world.experiment("language_modeling", {pieces + "}"}))->tokenizer().special().eos,
            0);
  EXPECT_EQ(task_of_new_run(world.experiment("language_modeling", {pieces + ", special_tokens: false}"}))
                ->tokenizer()
                .special()
                .eos,
            -1);
  EXPECT_GE(task_of_new_run(world.experiment("language_modeling", {"data.tokenizer.special_tokens=true"}))
                ->tokenizer()
                .special()
                .eos,
            0);
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { world.experiment("text_to_text", {"data.tokenizer.special_tokens=false"}); }),
              HasSubstr("data.tokenizer.special_tokens cannot be false: the task needs them"));
}

TEST(Task, PerplexityPerWordCountsWordsAndLineEnds) {
  const TinyWorld world;
  world.dir().write("data/words.txt", " \n sun  and moon\nrain .\n");
  for (const auto& [documents, words] : {std::pair("none", 8), std::pair("line", 7)}) {
    const auto task = task_of_new_run(world.experiment(
        "language_modeling", {"data.valid=words.txt", std::string("data.documents=") + documents}));
    const auto model = model_of(*task);
    const auto metrics = task->evaluate(*model, Split::valid);
    const double tokens = metrics.at("tokens") + 1;  // the first token is not predicted
    EXPECT_NEAR(std::log(metrics.at("word_perplexity")), metrics.at("loss") * tokens / words, 1e-9)
        << documents;
  }
  // Nor is there one without words: where no blanks separate them, or where it is too large for a double.
  world.dir().write("data/words.txt", "今天天气很好，我们去公园散步。\n山高水长，明月几时有？\n");
  const auto chinese = task_of_new_run(
      world.experiment("language_modeling", {"data.valid=words.txt", "data.tokenizer.type=byte"}));
  EXPECT_FALSE(chinese->evaluate(*model_of(*chinese), Split::valid).contains("word_perplexity"));
  world.dir().write("data/words.txt", std::string(3000, 's') + "\n");
  const auto task = task_of_new_run(world.experiment("language_modeling", {"data.valid=words.txt"}));
  EXPECT_FALSE(task->evaluate(*model_of(*task), Split::valid).contains("word_perplexity"));
}

TEST(Task, AnUnknownLabelIsAnErrorThatNamesItsFile) {
  const TinyWorld world;
  world.dir().write("data/other.tsv", "sentence\tlabel\nsun sea\tviolet\n");
  for (const char* architecture : {"encoder", "decoder", "encoder_decoder"}) {
    const auto task = task_of_new_run(world.experiment(
        "text_classification", {"data.valid=other.tsv", std::string("model.architecture=") + architecture}));
    EXPECT_THAT(message_of<DataError>([&] { task->batches(Split::valid); }),
                StartsWith(world.path("data/other.tsv").string() + ": the label 'violet' does not occur"));
  }
}

// Only the remaining part of a cut target counts, in tokens and in bytes.
TEST(Task, BitsPerByteAreOfWhatIsScored) {
  const TinyWorld world;
  for (const int64_t length : {3, 6, 40}) {
    const auto task = task_of_new_run(world.experiment(
        "text_to_text", {"data.tokenizer.type=byte", fmt::format("data.target_length={}", length),
                         "model.max_positions=64"}));
    const auto model = model_of(*task);
    const auto metrics = task->evaluate(*model, Split::valid);
    // Here a token is a byte, and eos is the byte of the line break.
    EXPECT_NEAR(metrics.at("bits_per_byte"), metrics.at("loss") / std::numbers::ln2, 1e-9) << length;
  }
}

TEST(Task, AccuracyIsOfTheRowsThatAreScored) {
  const TinyWorld world;
  std::vector<double> accuracies;
  for (const int64_t batch_size : {1, 2, 100}) {
    torch::manual_seed(5);
    const auto task = task_of_new_run(world.experiment(
        "text_classification", {"model.architecture=encoder_decoder", "training.batch_tokens=200",
                                fmt::format("training.batch_size={}", batch_size)}));
    const auto model = model_of(*task);
    accuracies.push_back(task->evaluate(*model, Split::valid, {.max_batches = 1}).at("f1"));
  }
  EXPECT_EQ(accuracies[0], accuracies[1]);
  EXPECT_EQ(accuracies[0], accuracies[2]);
}

TEST(Task, CharactersOfTheValidationPartAreKnown) {
  const TinyWorld world;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "sun and rain ";
  world.dir().write("data/line.txt", text + "\n");
  const auto task = task_of_new_run(world.experiment("language_modeling", {"data.train=line.txt"}));
  EXPECT_EQ(task->tokenizer().vocab_size(), 9) << "a d i n r s u, a blank and the line end";
  EXPECT_GT(task->batches(Split::valid).n_batches(0), 0);
}

TEST(Task, AnUnknownCharacterIsAnErrorThatNamesItsFile) {
  const TinyWorld world;
  world.dir().write("data/other.txt", "sun and 月\n");
  world.dir().write("data/more.txt", "sun and rain\n");
  const auto task =
      task_of_new_run(world.experiment("language_modeling", {"data.valid=[more.txt, other.txt]"}));
  EXPECT_THAT(message_of<DataError>([&] { task->batches(Split::valid); }),
              StartsWith(world.path("data/more.txt").string() + ", " + world.path("data/other.txt").string() +
                         ": the character \"月\" (U+6708) is not in the vocabulary"));
}

TEST(Task, EvaluationsTellHowFarTheyAre) {
  const TinyWorld world;
  for (const char* name : {"language_modeling", "text_classification", "text_to_text"}) {
    SCOPED_TRACE(name);
    const auto task = task_of_new_run(world.experiment(name));
    const auto model = initialized_model(task->experiment(), *task);
    const int64_t n_batches = task->batches(Split::valid).n_batches(0);
    ASSERT_GT(n_batches, 1);
    std::vector<std::pair<int64_t, int64_t>> told, expected;
    for (int64_t i = 1; i <= n_batches; ++i) expected.emplace_back(i, n_batches);
    task->evaluate(*model, Split::valid,
                   {.on_progress = [&](int64_t done, int64_t all) { told.emplace_back(done, all); }});
    EXPECT_EQ(told, expected);
  }
}

TEST(Task, SplitsThatAreNotGivenAreAnError) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.experiment("language_modeling"));
  EXPECT_THROW(task->batches(Split::test), DataError);
  EXPECT_THROW(task_of_new_run(parse_experiment("name: x", "x.yaml")), DataError);
}

TEST(Task, BitsPerByteOfATranslationCountItsTargets) {
  const TinyWorld world;
  const auto bits = [&](const std::vector<std::string>& overrides) {
    const auto task = task_of_new_run(world.experiment("text_to_text", overrides));
    const auto metrics = task->evaluate(*model_of(*task), Split::valid);
    return std::pair(metrics.at("bits_per_byte"), metrics.at("loss") / std::numbers::ln2);
  };
  const auto [bits_of_letters, letters] = bits({"data.target_length=32"});
  EXPECT_NEAR(bits_of_letters, letters, 1e-12);  // a letter is a byte, and eos is the line break
  const auto [bits_of_pieces, pieces] =
      bits({"data.tokenizer={type: sentencepiece, vocab_size: 28, byte_fallback: false}",
            "data.target_length=32"});
  EXPECT_LT(bits_of_pieces, 0.8 * pieces);  // pieces are longer
}

// The two families that can continue or answer a text are scored on the same targets after the same tokens.
TEST(Task, FamiliesAreScoredOnTheSameTargets) {
  const TinyWorld world;
  const auto tokens_of = [&](std::string_view name, const std::vector<std::string>& overrides) {
    const auto task = task_of_new_run(world.experiment(name, overrides));
    return task->evaluate(*model_of(*task), Split::valid).at("tokens");
  };
  EXPECT_EQ(tokens_of("language_modeling", {"data.prefix_length=10", "data.documents=line"}),
            tokens_of("language_modeling", {"data.prefix_length=10", "data.documents=line",
                                            "model.architecture=encoder_decoder"}));
  EXPECT_EQ(tokens_of("text_to_text", {}),
            tokens_of("text_to_text", {"model.architecture=decoder", "model.max_positions=48"}));
}

// A decoder learns to answer like an encoder-decoder, and does not repeat the question in its answer.
TEST(Task, BothFamiliesLearnToAnswer) {
  for (const char* architecture : {"encoder_decoder", "decoder"}) {
    SCOPED_TRACE(architecture);
    const TinyWorld world;
    std::string questions, answers;
    for (int i = 0; i < 60; ++i) {
      questions += i % 2 ? "aa\n" : "bb\n";
      answers += i % 2 ? "yes\n" : "no\n";
    }
    world.dir().write("data/pairs.de", questions);
    world.dir().write("data/pairs.en", answers);
    const auto result =
        train(world.experiment("text_to_text",
                               {std::string("model.architecture=") + architecture, "model.max_positions=48",
                                "model.dropout=0", "training.steps=60", "training.batch_size=16"}),
              {.run_dir = world.path("run")});
    const auto run = Run::open(result.run_dir);
    const auto samples = run.task().samples(run.model(), {"aa", "bb"});
    EXPECT_EQ(samples.at(0).output, "yes");
    EXPECT_EQ(samples.at(1).output, "no");
    EXPECT_EQ(samples.at(1).input, "bb");
  }
}

TEST(Task, TargetsMayBeLongerThanSources) {
  const TinyWorld world;
  world.dir().write("data/long.de", "sun\nsea\n");
  world.dir().write("data/long.en", std::string(50, 's') + "\n" + std::string(7, 's') + "\n");
  for (const char* architecture : {"encoder_decoder", "decoder"}) {
    SCOPED_TRACE(architecture);
    const auto task = task_of_new_run(world.experiment(
        "text_to_text", {"data.valid=long", "data.sequence_length=8", "data.target_length=20",
                         std::string("model.architecture=") + architecture}));
    EXPECT_EQ(task->batches(Split::valid).batch(0, 0).n_targets(), 20 + 8);
  }
}

TEST(Task, SourcesTooLongForTheModelAreCut) {
  const TinyWorld world;
  const auto task =
      task_of_new_run(world.experiment("text_to_text", {"data.sequence_length=5", "model.max_positions=5"}));
  const auto model = model_of(*task);
  EXPECT_FALSE(task->samples(*model).empty());
  EXPECT_GT(task->evaluate(*model, Split::valid).at("tokens"), 0);
}

// Each of the three families can learn to classify the same rows, whose texts determine the class.
TEST(Task, EachFamilyClassifies) {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"encoder", "head"}, {"decoder", "head"}, {"encoder_decoder", "text"}, {"encoder_decoder", "head"}};
  for (const auto& [architecture, answer] : answers) {
    SCOPED_TRACE(architecture + " " + answer);
    const TinyWorld world;
    std::string table = "sentence\tlabel\n";
    for (int i = 0; i < 60; ++i) {
      const auto n = static_cast<size_t>(1 + i % 5);
      table += i % 2 ? std::string(n, 'b') + " x\tsecond\n" : std::string(n, 'a') + " yy\tfirst\n";
    }
    world.dir().write("data/table.tsv", table);
    const auto result =
        train(world.experiment("text_classification",
                               {"model.architecture=" + architecture,
                                "task={type: text_classification, answer: " + answer + "}", "model.dropout=0",
                                "training.steps=40", "training.batch_size=16"}),
              {.run_dir = world.path("run")});
    const auto last = timeless_metrics(result.run_dir).back();
    EXPECT_EQ(last.at("valid_accuracy"), 1.0);
    EXPECT_EQ(last.at("valid_f1"), 1.0);
  }
}

TEST(Task, OnlyAnEncoderDecoderAnswersInText) {
  const TinyWorld world;
  for (const char* architecture : {"encoder", "decoder"}) {
    EXPECT_THAT(message_of<ConfigError>([&] {
                  world.experiment("text_classification", {std::string("model.architecture=") + architecture,
                                                           "task={type: text_classification, answer: text}"});
                }),
                HasSubstr("task.answer text is for an encoder_decoder"));
  }
}

// Compares decoding with a cache with teacher forcing of all tokens at once.
TEST(LabelLikelihood, IsTheSumOverTheAnswersTokens) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.experiment("text_to_text"));
  const auto model = model_of(*task);
  model->eval();
  const auto& tokenizer = task->tokenizer();
  const auto& special = tokenizer.special();
  const std::vector<TokenIds> answers = {tokenizer.encode("sea"), tokenizer.encode("a"),
                                         tokenizer.encode("sun tree")};
  const auto source = tokenizer.encode("moon rain");
  const auto likelihood = LabelLikelihood(*model, special, answers, 24)({source, TokenIds{8}})[0];

  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < answers.size(); ++i) {
    auto read = source, targets = answers[i], inputs = answers[i];
    read.push_back(special.eos);
    targets.push_back(special.eos);
    inputs.insert(inputs.begin(), special.bos);
    Batch batch;
    batch.input.ids = torch::tensor(read).unsqueeze(0);
    batch.decoder.ids = torch::tensor(inputs).unsqueeze(0);
    batch.targets = torch::tensor(targets);
    const auto log_p = torch::log_softmax(model->logits(model->features(batch)), -1);
    const double expected = log_p.gather(1, batch.targets.unsqueeze(1)).sum().item<double>();
    EXPECT_NEAR(likelihood[static_cast<int64_t>(i)].item<double>(), expected, 1e-4);
  }
}

}  // namespace
}  // namespace zoo::testing
