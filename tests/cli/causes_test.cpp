// zoo lens, zoo heads, zoo ablate, zoo patch and zoo attribute, as users run them.

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/suite_directory.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A directory with a writer, a finder of hidden letters and a translator, which have learnt little.
class CauseCommands : public SuiteDirectory<CauseCommands> {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_corpora(*dir_);
    dir_->write("common.yaml", R"(
data: {sequence_length: 24, tokenizer: {type: char}}
model: {d_model: 16, n_layers: 2, n_heads: 2, d_ff: 32, max_positions: 32, dropout: 0.1}
training: {steps: 4, batch_size: 4, evaluate_every: 2, checkpoint_every: 2, threads: 1}
generation: {max_new_tokens: 6}
)");
    train("writer", "language_modeling", "decoder", "text.txt");
    train("filler", "masked_language_modeling", "encoder", "text.txt");
    train("translator", "text_to_text", "encoder_decoder", "pairs");
  }
  static void train(std::string_view name, std::string_view task, std::string_view architecture,
                    std::string_view corpus) {
    dir_->write(
        fmt::format("{}.yaml", name),
        fmt::format("extends: common.yaml\ntask: {}\nmodel: {{architecture: {}}}\ndata: {{train: {}}}\n",
                    task, architecture, corpus));
    const auto outcome = zoo(fmt::format("train {}.yaml --out {} --device cpu", name, name));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static std::string output(const std::string& arguments) {
    const auto outcome = zoo(arguments + " --device cpu");
    EXPECT_EQ(outcome.code, 0) << arguments << '\n' << outcome.err;
    return outcome.out;
  }
  static json document(const std::string& arguments) { return json::parse(output(arguments + " --json")); }
  static std::string page(std::string_view name) { return read_file(*dir_ / std::string(name)); }
};

TEST_F(CauseCommands, TheLensShowsEachDepthAndThePartsOfTheAnswer) {
  const auto text = output("lens writer --text 'to be' --answer n");
  EXPECT_THAT(text, StartsWith("place 4, “e”: the answer “n”\ndepth  likeliest "));
  EXPECT_THAT(text, HasSubstr("\n    2  “"));
  EXPECT_THAT(text, HasSubstr("the logit of “n”, "));
  EXPECT_THAT(text, HasSubstr("layers.0.feed_forward"));

  const auto lens = document("lens writer --text 'to be' --answer n --out lens.html");
  EXPECT_EQ(lens["input"], "to be");
  EXPECT_EQ(lens["places"], json({"t", "o", "▁", "b", "e"}));
  std::vector<std::string> answers;
  for (const auto& answer : lens["answers"]) answers.push_back(answer["label"]);
  EXPECT_THAT(answers, ElementsAre("o", "▁", "b", "e", "n"));
  ASSERT_THAT(lens["depths"], SizeIs(3));
  EXPECT_THAT(lens["depths"][0]["cells"], SizeIs(5));
  EXPECT_NEAR(lens["depths"][2]["cells"][0]["divergence"], 0, 1e-6);
  double sum = 0;
  for (const auto& part : lens["contributions"]["parts"]) sum += part["logit"].get<double>();
  EXPECT_NEAR(sum, lens["contributions"]["logit"], 1e-4);
  EXPECT_EQ(lens["contributions"]["place"], 4);
  // The last depth is the model's own prediction.
  const auto maps = document("attention writer --text 'to be'");
  EXPECT_EQ(maps["predictions"][4][0]["token"], lens["depths"][2]["cells"][4]["likeliest"][0]["label"]);
  EXPECT_NEAR(maps["predictions"][4][0]["probability"],
              lens["depths"][2]["cells"][4]["likeliest"][0]["probability"], 1e-5);
  EXPECT_THAT(page("lens.html"), HasSubstr("<title>Lens: to be</title>"));
  EXPECT_THAT(page("lens.html"), HasSubstr("layers.1.attention.heads.1"));
}

TEST_F(CauseCommands, TheLensReadsHiddenTokensAndTranslations) {
  EXPECT_THAT(output("lens filler --text 'to b<mask> or'"), StartsWith("place 5, “<mask>”: the answer “"));
  EXPECT_THAT(output("lens filler --text 'to be' --position 2"), StartsWith("place 2, “o”: the answer “o”"));
  const auto lens = document("lens translator --text 'das ist gut' --target 'that'");
  EXPECT_EQ(lens["target"], "that");
  EXPECT_EQ(lens["places"], json({"<bos>", "t", "h", "a", "t"}));
  EXPECT_EQ(lens["answers"][4]["label"], "<eos>");
  EXPECT_EQ(lens["contributions"]["parts"][0]["name"], "decoder.residual.0");
}

TEST_F(CauseCommands, ALensIsTrainedOnSomeBatchesAndMeasuredOnOthers) {
  // The letters make 18 batches of four rows of 24.
  const auto text = output("lens writer --train text.txt --steps 40 --lr 0.01 --out lens.safetensors");
  EXPECT_THAT(text,
              StartsWith("text.txt: divergence from the model's own answer over 288 places of 3 held-out "
                         "batches\ndepth     plain   trained\n    0 "));
  const auto training = document("lens writer --train text.txt --steps 40 --lr 0.01 --out again.safetensors");
  EXPECT_EQ(page("again.safetensors"), page("lens.safetensors")) << "the same bits";
  EXPECT_EQ(training["data"], "text.txt");
  EXPECT_EQ(training["steps"], 40);
  EXPECT_EQ(training["seed"], 1);
  EXPECT_EQ(training["trained_batches"], 15);
  EXPECT_EQ(training["held_out_batches"], 3);
  ASSERT_THAT(training["depths"], SizeIs(2));
  for (const auto& depth : training["depths"]) EXPECT_LT(depth["trained"], depth["plain"]);
  const auto fewer = document("lens writer --train text.txt --steps 8 --seed 3 --out fewer.safetensors");
  EXPECT_EQ(fewer["trained_batches"], 8) << "a step has a batch";
  EXPECT_EQ(fewer["held_out_batches"], 2);

  const auto plain = document("lens writer --text 'to be'"),
             trained = document("lens writer --text 'to be' --lens lens.safetensors --out trained.html");
  EXPECT_EQ(plain["lens"], "plain");
  EXPECT_EQ(trained["lens"], "trained");
  EXPECT_NE(trained["depths"][0], plain["depths"][0]);
  EXPECT_EQ(trained["depths"][2], plain["depths"][2]);
  EXPECT_EQ(trained["contributions"], plain["contributions"]);
  EXPECT_THAT(page("trained.html"), HasSubstr("<title>Trained lens: to be</title>"));
  EXPECT_THAT(output("lens writer --text 'to be' --answer n --lens lens.safetensors"),
              StartsWith("place 4, “e”: the answer “n”, by a trained lens\n"));

  for (const auto& [run, data] : {std::pair("filler", "text.txt"), {"translator", "pairs"}}) {
    const auto other =
        document(fmt::format("lens {} --train {} --steps 30 --lr 0.01 --out {}.safetensors", run, data, run));
    for (const auto& depth : other["depths"]) EXPECT_LT(depth["trained"], depth["plain"]) << run;
  }
  EXPECT_EQ(document("lens translator --text 'das ist gut' --lens translator.safetensors")["lens"],
            "trained");
  EXPECT_THAT(problem("lens translator --text 'das ist gut' --lens filler.safetensors"),
              HasSubstr("filler.safetensors: is the lens of a model with other weights"));
  EXPECT_THAT(problem("lens writer --checkpoint step-2 --text 'to be' --lens lens.safetensors"),
              HasSubstr("lens.safetensors: is the lens of a model with other weights"));
}

TEST_F(CauseCommands, AblationsMeasureEveryPartOnTheRunsData) {
  const auto ablation = document("ablate writer --batches 1000000 --out ablation.html");
  const auto scores = document("evaluate writer");
  EXPECT_NEAR(ablation["loss"], scores["loss"], 1e-5);
  EXPECT_EQ(ablation["targets"], scores["tokens"]);
  EXPECT_EQ(ablation["by"], "zero");
  EXPECT_EQ(ablation["data"], "the run's validation data");
  ASSERT_THAT(ablation["ablations"], SizeIs(2 * (2 + 2)));
  std::set<std::string> names;
  for (const auto& row : ablation["ablations"]) {
    names.insert(row["parts"][0]);
    EXPECT_NEAR(row["loss"].get<double>() - ablation["loss"].get<double>(), row["loss_change"], 1e-9);
  }
  EXPECT_TRUE(names.contains("layers.1.attention.heads.0"));
  EXPECT_TRUE(names.contains("layers.0.feed_forward"));
  EXPECT_THAT(page("ablation.html"), HasSubstr("Loss without a head"));

  const auto chosen = document("ablate writer --batches 1000000 --heads 0.1 1.0");
  ASSERT_THAT(chosen["ablations"], SizeIs(3));
  EXPECT_EQ(chosen["ablations"][0], ablation["ablations"][1]);
  EXPECT_EQ(chosen["ablations"][2]["parts"],
            json({"layers.0.attention.heads.1", "layers.1.attention.heads.0"}));

  const auto text =
      output("ablate writer --text 'to be or not' --parts layers.0.attention --by mean --positions 3 4");
  EXPECT_THAT(text, StartsWith("to be or not, 11 targets, mean\nwithout "));
  EXPECT_THAT(text, HasSubstr("\nlayers.0.attention "));
  EXPECT_THAT(
      document("ablate translator --heads encoder.0.1 decoder.1.0 cross.1.1 --by resample")["ablations"],
      SizeIs(4));
  const auto hidden = [](const std::string& answer) {
    const auto found = document("ablate filler --text 'to b<mask> or'" + answer);
    EXPECT_EQ(found["targets"], 1);
    return found["loss"].get<double>();
  };
  const double of_e = hidden(" --answer e"), of_t = hidden(" --answer t");
  EXPECT_NE(of_e, of_t);
  EXPECT_LE(hidden(""), std::min(of_e, of_t)) << "its own answer is the likeliest";
  EXPECT_THAT(document("ablate filler --by mean")["ablations"], SizeIs(8));
  const auto repeated = document("ablate writer --repeated --length 6 --heads 0.0");
  EXPECT_EQ(repeated["data"], "random tokens that are repeated");
  EXPECT_EQ(repeated["targets"], 8 * 5);
}

TEST_F(CauseCommands, PatchesBringTheCleanAnswerBack) {
  const auto text =
      output("patch writer --clean 'to be' --corrupt 'to or' --answer n --against t --out patch.html");
  EXPECT_THAT(text, StartsWith("logit of “n” less that of “t”: "));
  EXPECT_THAT(text, HasSubstr("\nresidual.2 at 4 “e”"));
  const auto patches = document("patch writer --clean 'to be' --corrupt 'to or' --answer n --against t");
  EXPECT_THAT(patches["heads"], SizeIs(4));
  ASSERT_THAT(patches["positions"], SizeIs((3 + 2 + 2) * 5));
  for (const auto& row : patches["positions"]) {
    if (row["part"] == "residual.2") {
      EXPECT_NEAR(row["recovered"], row["position"] == 4 ? 1 : 0, 1e-4);
    }
    if (row["position"] < 3) {
      EXPECT_NEAR(row["recovered"], 0, 1e-4) << "the texts begin alike";
    }
  }
  EXPECT_THAT(page("patch.html"), HasSubstr("\"title\":\"residual stream\""));
  EXPECT_THAT(page("patch.html"), HasSubstr("\"b / o\",\"e / r\""));
}

TEST_F(CauseCommands, AttributionsAddUpToTheAnswer) {
  const auto text = output("attribute writer --text 'to be' --answer n --steps 400 --out attribution.html");
  EXPECT_THAT(text,
              StartsWith("the logit of “n” at place 4, by integrated gradients, baseline zero, 400 steps\n"));
  EXPECT_THAT(text, HasSubstr("\n    4  “e” "));
  EXPECT_THAT(text, HasSubstr("for the baseline: error "));
  EXPECT_THAT(page("attribution.html"), HasSubstr("<title>Attribution: to be</title>"));
  const auto attribution = document("attribute writer --text 'to be' --answer n --steps 400");
  double sum = 0;
  for (const auto& token : attribution["source"]) sum += token["attribution"].get<double>();
  EXPECT_NEAR(sum, attribution["sum"], 1e-9);
  EXPECT_NEAR(attribution["completeness_error"],
              sum - attribution["score"].get<double>() + attribution["baseline_score"].get<double>(), 1e-9);
  EXPECT_NEAR(attribution["completeness_error"], 0, 0.05);
  // The logit is the one that the lens takes apart.
  const auto lens = document("lens writer --text 'to be' --answer n");
  EXPECT_NEAR(attribution["score"], lens["contributions"]["logit"], 1e-4);
  EXPECT_EQ(attribution["answer"]["label"], "n");
  EXPECT_TRUE(attribution["against"].is_null());

  const auto sides = document("attribute translator --text 'das ist gut' --target that --by gradient_input");
  EXPECT_THAT(sides["source"], SizeIs(12));
  EXPECT_THAT(sides["decoder"], SizeIs(5));
  EXPECT_EQ(sides["decoder"][0]["token"], "<bos>");
  EXPECT_FALSE(sides.contains("completeness_error"));
  const auto filler = document("attribute filler --text 'to b<mask> or' --baseline mask --steps 4");
  EXPECT_EQ(filler["place"], 5);
  EXPECT_EQ(filler["baseline"], "mask");
}

TEST_F(CauseCommands, HeadsAreFoundOnTokensThatAreRepeated) {
  const auto text = output("heads writer --length 6");
  EXPECT_THAT(text, StartsWith("layer  head  previous  duplicate  induction\n    0     0 "));
  EXPECT_THAT(text, HasSubstr("recall of 6 random tokens that are repeated: "));
  const auto heads = document("heads filler");
  EXPECT_THAT(heads["heads"], SizeIs(4));
  EXPECT_TRUE(heads["recall"].is_null());
  EXPECT_EQ(heads["heads"][0]["kind"], "encoder");
}

TEST_F(CauseCommands, RefuseInOneLine) {
  EXPECT_THAT(problem("lens writer"), HasSubstr("--text is required"));
  EXPECT_THAT(problem("lens writer --text 'to be' --position 5"), HasSubstr("it has the places 0 to 4"));
  EXPECT_THAT(problem("lens writer --text 'to be' --answer 'to'"),
              HasSubstr("“to” is 2 tokens of this vocabulary"));
  EXPECT_THAT(problem("lens writer --text 'to be' --target x"), HasSubstr("--target"));
  EXPECT_THAT(problem("lens writer --image x.png"), HasSubstr("reads texts"));
  EXPECT_THAT(problem("lens writer --text 'to be' --lens writer/model.safetensors"),
              HasSubstr("is no trained lens"));
  EXPECT_THAT(problem("lens writer --text 'to be' --lens absent.safetensors"),
              HasSubstr("absent.safetensors"));
  EXPECT_THAT(problem("lens writer --train text.txt"), HasSubstr("give --out FILE.safetensors"));
  EXPECT_THAT(problem("lens writer --train text.txt --out x.html"), HasSubstr("give --out FILE.safetensors"));
  const auto weights = page("writer/model.safetensors");
  EXPECT_THAT(problem("lens writer --train text.txt --out writer/model.safetensors"),
              HasSubstr("writer/model.safetensors is there, and no trained lens"));
  EXPECT_EQ(page("writer/model.safetensors"), weights);
  EXPECT_THAT(problem("lens writer --train text.txt --out absent/x.safetensors"),
              HasSubstr("--out: there is no directory absent"));
  EXPECT_THAT(problem("probe norm=rms_norm --out writer"), HasSubstr("--out: writer is a directory"));
  EXPECT_THAT(problem("probe norm=rms_norm --task writer.yaml --set model.norm=layer_norm"),
              HasSubstr("--set model.norm=layer_norm contradicts norm=rms_norm"));
  for (const std::string option :
       {"--text x", "--image x", "--target x", "--position 1", "--answer x", "--lens x"})
    EXPECT_THAT(problem("lens writer --train text.txt --out x.safetensors " + option),
                HasSubstr(option.substr(0, option.find(' ')) + " contradicts --train"));
  for (const std::string option : {"--steps", "--lr", "--seed"})
    EXPECT_THAT(problem("lens writer --text 'to be' " + option + " 1"),
                HasSubstr(option + ": is for --train"));
  dir_->write("short.txt", "to be or not to be\n");
  EXPECT_THAT(problem("lens writer --train short.txt --out x.safetensors"),
              HasSubstr("the data make one batch"));
  dir_->write("scores.tsv", "sentence\tlabel\nto be\t1\nor not\t2\nto be or\t3\nnot to be\t6\n");
  train("judge", "{type: text_classification, problem: regression}", "encoder", "scores.tsv");
  EXPECT_THAT(problem("lens judge --text 'to be'"), HasSubstr("predict one token or class at each place"));
  EXPECT_THAT(problem("lens judge --train scores.tsv --out x.safetensors"),
              HasSubstr("predict one token or class at each place"));
  EXPECT_THAT(problem("ablate writer --heads 2.0"), HasSubstr("the model has no layers.2.attention.heads.0"));
  EXPECT_THAT(problem("ablate writer --heads 0.1 layers.0.attention.heads.1"), HasSubstr("is named twice"));
  EXPECT_THAT(problem("ablate writer --heads layers.0.feed_forward"), HasSubstr("give it with --parts"));
  EXPECT_THAT(problem("ablate writer --text 'to be' --positions 500"),
              HasSubstr("there is no position 500: the longest row has 5"));
  EXPECT_THAT(problem("ablate writer --text 'to be' --by resample"), HasSubstr("there is one text"));
  EXPECT_THAT(problem("ablate writer --text 'to be' --data text.txt"), HasSubstr("give one of them"));
  EXPECT_THAT(problem("ablate writer --reference text.txt"), HasSubstr("--reference is for --by mean"));
  EXPECT_THAT(problem("ablate writer --length 6"), HasSubstr("--length is for --repeated"));
  EXPECT_THAT(problem("ablate filler --text 'to be'"), HasSubstr("write <mask> in it"));
  EXPECT_THAT(problem("ablate writer --answer n"), HasSubstr("--answer is for --text"));
  EXPECT_THAT(problem("patch writer --clean 'to be' --corrupt 'to'"),
              HasSubstr("has 5 tokens and the corrupted one 2"));
  EXPECT_THAT(problem("attribute writer --text 'to be' --by gradient_input --steps 3"),
              HasSubstr("--baseline and --steps are for --by integrated_gradients"));
  EXPECT_THAT(problem("attribute writer --text 'to be' --baseline mask"),
              HasSubstr("the vocabulary has no token <mask>"));
  EXPECT_THAT(problem("attribute writer --text 'to be' --answer n --against n"),
              HasSubstr("name two outputs"));
  EXPECT_THAT(problem("heads writer --length 17"), HasSubstr("give a length from 2 to 16"));
  EXPECT_THAT(problem("heads translator"), HasSubstr("models with one side"));
}

}  // namespace
}  // namespace zoo::testing
