// An error is one line with the place and what to do, and loses nothing of an earlier run.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;
using ::testing::StartsWith;

/// A directory with a corpus, a configuration "tiny.yaml" and the finished run "run".
class Errors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    std::string text;
    for (int i = 0; i < 40; ++i) text += "to be or not to be that is the question\n";
    dir_->write("text.txt", text);
    dir_->write("tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training:
  {steps: 4, batch_size: 2, schedule: {type: constant}, evaluate_every: 2, checkpoint_every: 2, threads: 1}
generation: {max_new_tokens: 4}
)");
    const auto outcome = zoo("train tiny.yaml --device cpu --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static Outcome zoo(const std::string& arguments, const Surroundings& surroundings = {}) {
    return run_zoo(*dir_, arguments, surroundings);
  }
  static const TempDir& dir() { return *dir_; }
  static std::string train(const std::string& arguments) { return "train --device cpu " + arguments; }
  /// Trains with permission to replace the run, which must happen only if the new training can begin.
  static std::string replace_run(const std::string& arguments) {
    return train(arguments + " --out run --overwrite");
  }

  /// Expects one line with these parts and nothing else, and no changed byte in the run.
  static void expect_error(const std::string& arguments, const std::vector<std::string>& parts,
                           const Surroundings& surroundings = {}) {
    SCOPED_TRACE("zoo " + arguments);
    const auto before = files_below(dir() / "run");
    const auto outcome = zoo(arguments, surroundings);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("zoo: "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const auto& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(differences(before, files_below(dir() / "run")), IsEmpty());
  }

 private:
  static inline TempDir* dir_ = nullptr;
};

TEST_F(Errors, OfConfigurations) {
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {"model:\n  n_layer: 2\n", {"odd.yaml:3:3: unknown key 'model.n_layer'", "did you mean 'n_layers'?"}},
      {"modle: {n_layers: 2}\n", {"odd.yaml:2:1: unknown key 'modle'", "did you mean 'model'?"}},
      {"model: {n_layers: many}\n", {"odd.yaml:2:19: model.n_layers", "'many'"}},
      {"model: {norm: batch_norm}\n", {"odd.yaml:2:15: model.norm", "'batch_norm'", "layer_norm"}},
      {"training: {steps: 0}\n", {"odd.yaml:2:19: training.steps must be >= 1"}},
      {"model: {dropout: 1.5}\n", {"odd.yaml:2:18: model.dropout"}},
      {"model: {n_heads: 3}\n", {"odd.yaml:2:18: model.n_heads", "d_model", "16"}},
      {"model: {d_model: 6, position: rotary}\n", {"odd.yaml:2:", "rotary", "3"}},
      {"model: {vocab_size: 3}\n", {"model.vocab_size", "3"}},
      {"model: {d_model: 16\n", {"odd.yaml:"}},
      {"task: masked_language_modeling\n",
       {"model.architecture must be encoder for masked_language_modeling, not decoder"}},
      {"data: {sequence_length: 64}\n", {"odd.yaml:2:25: data.sequence_length 64", "model.max_positions 32"}},
  };
  for (const auto& [text, parts] : cases) {
    dir().write("odd.yaml", "extends: tiny.yaml\n" + text);
    expect_error(replace_run("odd.yaml"), parts);
  }
  dir().write("odd.yaml", "extends: nowhere.yaml\n");
  expect_error(replace_run("odd.yaml"), {"odd.yaml:1:", "nowhere.yaml"});
  expect_error(replace_run("nowhere.yaml"),
               {"nowhere.yaml", "No such file", "share/transformer-zoo/configs"});
  expect_error(replace_run("run"), {"run is a run: --resume goes on with it"});
  expect_error(replace_run("tiny.yaml --set model.position=rope"), {"did you mean 'rotary'?"});
  expect_error(replace_run("tiny.yaml --set model.architecture=bert"), {"did you mean 'encoder'?"});
  expect_error(replace_run("tiny.yaml --set model.n_layer=2"),
               {"--set model.n_layer=2: unknown key", "did you mean 'model.n_layers'?"});
  expect_error(replace_run("tiny.yaml --set model.n_layers=x"), {"--set model.n_layers=x", "'x'"});
  expect_error(replace_run("tiny.yaml --set model.n_layers"),
               {"--set: write model.n_layers=VALUE, as one word"});
  expect_error("inspect tiny.yaml --set model.n_heads=3", {"model.n_heads", "16"});
  expect_error("config tiny.yaml --set modle.n_layers=3", {"unknown key", "model"});
}

TEST_F(Errors, OfCorpora) {
  dir().write("empty.txt", "");
  dir().write("blank.txt", " \n\n");
  dir().write("latin-1.txt", "to be\nor n\xF6t\n");
  const auto with = [](const std::string& file) { return replace_run("tiny.yaml --set data.train=" + file); };
  expect_error(with("nowhere.txt"), {"nowhere.txt"});
  expect_error(with("fortunes/nowhere.txt"), {"fortunes/nowhere.txt", "scripts/get_data.sh fortunes"});
  expect_error(with("empty.txt"), {"empty.txt: the file is empty"});
  expect_error(with("blank.txt"), {"blank.txt: the file is empty"});
  expect_error(with("latin-1.txt"), {"latin-1.txt:2: not UTF-8 at byte 10", "\\xf6"});
  expect_error(with("run"), {"run"});
  dir().write("par.de", "das ist gut\n");
  dir().write("par.en", "that is good\n");
  expect_error(with("par.de --set task=text_to_text --set model.architecture=encoder_decoder"),
               {"par.de: name the prefix of both files: ", "/par"});
  dir().write("commas.tsv", "sentence,label\ngood,up\n");
  expect_error(with("commas.tsv --set task=text_classification --set model.architecture=encoder"),
               {"commas.tsv:1: columns are separated by tabs in a .tsv: call the file .csv if commas",
                "sentence,label"});
  expect_error("train text.txt --device cuda:120", {"no device 'cuda:120': "});
  expect_error("evaluate run --device cpu --data empty.txt", {"empty.txt: the file is empty"});
  expect_error("evaluate run --device cpu --split test", {"data.test names no files"});
  expect_error("tokenizer train --type char --out vocabulary nowhere.txt", {"nowhere.txt"});
  expect_error("tokenizer train --type char --out vocabulary latin-1.txt", {"latin-1.txt:2: not UTF-8"});
  EXPECT_FALSE(fs::exists(dir() / "vocabulary"));
}

TEST_F(Errors, OfTheCommandLine) {
  expect_error("--debug", {"a command is required: train, generate, ", "(see zoo --help)"});
  expect_error("tokenizer",
               {"a command is required: train, encode, decode, chat (see zoo tokenizer --help)"});
  expect_error("frobnicate", {"unknown command 'frobnicate' (see zoo --help)"});
  expect_error("trian tiny.yaml", {"unknown command 'trian'; did you mean 'train'?"});
  expect_error("tokenizer decod run",
               {"unknown command 'decod'; did you mean 'decode'? (see zoo tokenizer --help)"});
  expect_error("--frobnicate", {"unknown option '--frobnicate'"});
  expect_error("train", {"CONFIG|TEXT is required (see zoo train --help)"});
  expect_error("generate", {"RUN is required"});
  expect_error("attention run", {"--text is required"});
  expect_error("attention run --text to --heads --json", {"--heads contradicts --json"});
  expect_error("tokenizer train text.txt", {"--out is required (see zoo tokenizer train --help)"});
  expect_error(replace_run("tiny.yaml --frobnicate"), {"unknown option '--frobnicate'"});
  expect_error(replace_run("tiny.yaml another.yaml"), {"tiny.yaml is no text: give one configuration"});
  expect_error(replace_run("tiny.yaml --resume"), {"--overwrite", "--resume"});
  expect_error("train tiny.yaml --out run --overwrite --device gpu", {"unknown device 'gpu'", "cuda:N"});
  expect_error(replace_run("tiny.yaml --overwrite --set training.cuda_graphs=true"),
               {"training.cuda_graphs: true needs a GPU, but this training is on cpu: leave it out"});
  expect_error(replace_run("tiny.yaml --overwrite --set training.cuda_graphs=true "
                           "--set training.activation_checkpointing=every_layer"),
               {"training.cuda_graphs cannot record activation_checkpointing: leave one of them out"});
  expect_error("generate 'no\nwhere' --prompt a", {"no\\nwhere: no such run"});

  expect_error(train("tiny.yaml --out run"), {"run: this run exists", "--resume", "--overwrite"});
  dir().write("precious/notes.txt", "mine");
  for (const char* flag : {"", "--overwrite"}) {
    expect_error(train(fmt::format("tiny.yaml --out precious {}", flag)),
                 {"precious: exists, but is not a run"});
  }
  EXPECT_EQ(files_below(dir() / "precious"), (std::map<std::string, std::string>{{"notes.txt", "mine"}}));
}

// Whatever a message quotes, it is one line of at most 300 characters; --debug shows all of it.
TEST_F(Errors, AreShort) {
  const std::string name(200, 'n'), path = name + "/" + name + "/" + std::string(4000, 'x');
  for (const auto& command :
       {"generate " + path, "generate " + path + " --prompt a", "train " + path, "train " + path + ".txt",
        "train tiny.yaml --set data.train=" + path, "train tiny.yaml --set " + name + "=3", "config " + path,
        "compare " + path, "evaluate run --data " + path, "train tiny.yaml --set init_from=" + path,
        "frobnicate" + name, "generate run --" + name, "generate run --device " + name}) {
    SCOPED_TRACE(command.substr(0, 60));
    const auto outcome = zoo(command);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_LE(count_code_points(outcome.err), 300 + std::string_view("zoo: \n").size()) << outcome.err;
    EXPECT_TRUE(!find_invalid_utf8(outcome.err));
  }
  EXPECT_THAT(zoo("generate " + path + " --prompt a --debug").err, HasSubstr(name + "/" + name));
}

TEST_F(Errors, NameWhatIsMeant) {
  expect_error(
      "generate SmolLM2-135M --prompt a",
      {"SmolLM2-135M: no such run", "hf download HuggingFaceTB/SmolLM2-135M --local-dir SmolLM2-135M",
       "git clone https://huggingface.co/HuggingFaceTB/SmolLM2-135M"});
  expect_error("predict someone/model-7b --text a",
               {"hf download someone/model-7b --local-dir someone/model-7b"});
  expect_error("predict nothing --text a", {"nothing: no such run; zoo train makes one"});
  expect_error("train gpt2", {"data.train names no files: give them with --set data.train=FILE"});
  expect_error("config learning_rate", {"did you mean the key 'training.optimizer.lr'?"});
  expect_error("config optimzer.lr", {"did you mean the key 'training.optimizer.lr'?"});
  expect_error("config training.patiense", {"did you mean the key 'training.patience'?"});
  expect_error("config gtp2", {"did you mean 'gpt2'?"});
  expect_error(replace_run("tiny.yaml --set learning_rate=3"), {"did you mean 'training.optimizer.lr'?"});
  expect_error(replace_run("tiny.yaml --steps x"),
               {"--set training.steps=x: training.steps must be an integer"});
  expect_error("help frobnicate", {"there is no command 'frobnicate'"});
  expect_error("generate run --checkpoint step-3 --prompt a",
               {"no checkpoint 'step-3'; there are: best, last, step-4, step-2"});
}

// Each kind of error that the parser of the command line finds.
TEST_F(Errors, OfTheCommandLineAreInOurWords) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"generate run --temperatur 3", "unknown option '--temperatur'; did you mean '--temperature'?"},
      {"generate run --debgu", "unknown option '--debgu'; did you mean '--debug'?"},
      {"generate run -p to", "unknown option '-p'"},
      {"generate run hello",
       "'hello' is one argument too many: zoo generate takes RUN; give a text with --prompt"},
      {"predict run hello",
       "'hello' is one argument too many: zoo predict takes RUN; give a text with --text"},
      {"train tiny.yaml --set training.steps 4", "--set: write training.steps=VALUE, as one word"},
      {"generate run --prompt to be",
       "'be' is one argument too many: zoo generate takes RUN; a text with blanks needs quotes"},
      {"tokenizer decode run 1 2", "'1' is one argument too many: zoo tokenizer decode takes RUN|DIR"},
      {"completion tcsh", "SHELL: 'tcsh' is not one of bash, zsh, fish"},
      {"generate run --max-tokens 3 --max-new-tokens 4", "--max-tokens"},
      {"generate run --input a --input b", "--input is given 2 times: give it once"},
      {"generate run --device cpu --device cpu --device cpu", "--device is given 3 times: give it once"},
      {"generate run --prompt", "--prompt needs a value"},
      {"train tiny.yaml --set", "--set needs a value"},
      {"evaluate run --data", "--data needs a value"},
      {"generate run --weights", "--weights needs a value"},
      {"generate run --json=1", "--json takes no value"},
      {"generate run --stream=maybe", "--stream takes no value"},
      {"--debug=x generate run", "--debug takes no value"},
      {"train tiny.yaml --resume --overwrite", "--resume contradicts --overwrite: give one of them"},
      {"evaluate run --split test --data text.txt", "--data contradicts --split: give one of them"},
      {"generate run --temperature x", "--temperature: 'x' is not a number"},
      {"generate run --temperature nan", "--temperature: 'nan' is not a number"},
      {"generate run --top-k 1.5", "--top-k: '1.5' is not a whole number of at least 0"},
      {"generate run --weights fp64", "--weights: 'fp64' is not one of auto, fp32, bf16, fp16, int8, int4"},
      {"generate run --cache fp64", "--cache: 'fp64' is not one of fp32, bf16, int8"},
      {"evaluate run --split tset", "--split: 'tset' is not one of valid, test"},
      {"evaluate run --split 1", "--split: '1' is not one of valid, test"},
      {"evaluate run --length-penalty x", "--length-penalty: 'x' is not a number"},
      {"compare tiny.yaml --match x", "--match: 'x' is not one of none, parameters, flops"},
      {"bench tiny.yaml --seconds -1", "--seconds: '-1' is not a number from 0 to 86400"},
      {"tokenizer train text.txt --out v --character-coverage 2",
       "--character-coverage: '2' is not a number from 0.98 to 1"},
  };
  for (const auto& [arguments, problem] : cases) {
    SCOPED_TRACE(arguments);
    expect_error(arguments, {problem, " (see zoo "});
  }
}

TEST_F(Errors, AreNotMadeByAProgramWithoutArguments) {
  const auto help = zoo("");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out, zoo("--help").out);
  EXPECT_THAT(help.out, HasSubstr("tokenizer"));
}

TEST_F(Errors, ComeWithAVersionToReport) {
  const auto file = read_file(fs::path(__FILE__).parent_path() / "../../CMakeLists.txt");
  const std::string before = "project(TransformerZoo VERSION ";
  const auto begin = file.find(before) + before.size();
  const auto version = file.substr(begin, file.find(' ', begin) - begin);
  const auto outcome = zoo("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith(fmt::format("transformer-zoo {} (LibTorch ", version)));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

/// A safetensors file: the length of the header, or `header_size` if it is given, the header, and some data.
std::string safetensors(const std::string& header, std::optional<uint64_t> header_size = std::nullopt) {
  const uint64_t size = header_size.value_or(header.size());
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(64, '\1');
}

std::vector<std::string> hostile_files(const std::string& good) {
  const auto f32 = [](const char* name, const char* shape, const char* offsets) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":{}}})", name, shape, offsets);
  };
  const auto one = [&](const char* shape, const char* offsets) {
    return safetensors("{" + f32("a", shape, offsets) + "}");
  };
  return {
      good.substr(0, 4),
      good.substr(0, 100),
      good.substr(0, good.size() - 1),
      safetensors("{}", 1'000'000),
      safetensors("{}", uint64_t{1} << 63),
      safetensors("{\"a\":"),
      safetensors(std::string(100'000, '[')),
      one("[32]", "[0,128]"),
      one("[16]", "[9223372036854775808,9223372036854775872]"),
      one("[9223372036854775808]", "[0,64]"),
      one("[4294967296,4294967296,4]", "[0,64]"),
      safetensors("{" + f32("a", "[12]", "[0,48]") + "," + f32("b", "[8]", "[32,64]") + "}"),
  };
}

TEST_F(Errors, OfDamagedTensorFiles) {
  const auto weights = dir() / "run/model.safetensors",
             state = dir() / "run/checkpoints/last/optimizer.safetensors";
  const auto good_weights = read_file(weights), good_state = read_file(state);
  size_t n = 0;
  for (const auto& bytes : hostile_files(good_weights)) {
    SCOPED_TRACE(fmt::format("hostile file {}", n++));
    dir().write("run/model.safetensors", bytes);
    expect_error("generate run --device cpu --prompt to", {"run/model.safetensors", "damaged"});
  }
  dir().write("run/model.safetensors", good_weights.substr(0, good_weights.size() / 2));
  expect_error("evaluate run --device cpu", {"run/model.safetensors"});
  expect_error("inspect run", {"run/model.safetensors"});
  expect_error("attention run --device cpu --text to", {"run/model.safetensors"});
  dir().write("run/model.safetensors", good_weights);

  dir().write("run/checkpoints/last/optimizer.safetensors", good_state.substr(0, good_state.size() / 2));
  expect_error(train("tiny.yaml --out run --resume --set training.steps=6"),
               {"run/checkpoints/step-4/optimizer.safetensors", "damaged"});
  dir().write("run/checkpoints/last/optimizer.safetensors", good_state);
  EXPECT_EQ(zoo("generate run --device cpu --prompt to").code, 0) << "the run is whole again";
}

TEST_F(Errors, OfOtherFilesOfARun) {
  const auto damage = [](const std::string& file, const std::string& content, const std::string& command) {
    const auto path = "run/" + file;
    const auto good = read_file(dir() / path);
    dir().write(path, content);
    expect_error(command, {path});
    dir().write(path, good);
  };
  const std::string generate = "generate run --device cpu --prompt to";
  for (const char* content : {"", "{", "{\"type\":\"char\"}", "[]", "\xFF"})
    damage("tokenizer.json", content, generate);
  damage("config.yaml", "model: {d_model: 16", generate);
  damage("config.yaml", "modle: {d_model: 16}", generate);
  const auto resume = train("tiny.yaml --out run --resume --set training.steps=6");
  for (const char* content : {"", "{}", "[1]", "{\"step\":-1}"})
    damage("checkpoints/step-4/state.json", content, resume);
  damage("config.yaml", "\xFF", resume);
  fs::create_directory(dir() / "hollow");
  expect_error("generate hollow --device cpu --prompt to", {"hollow: not a run: there is no config.yaml"});
}

TEST_F(Errors, OfAnotherArchitecture) {
  ASSERT_EQ(zoo(train("tiny.yaml --out wide --set model.d_model=32")).code, 0);
  ASSERT_EQ(zoo(train("tiny.yaml --out deep --set model.n_layers=2")).code, 0);
  const auto good = read_file(dir() / "run/model.safetensors");
  dir().write("run/model.safetensors", read_file(dir() / "wide/model.safetensors"));
  expect_error("generate run --device cpu --prompt to",
               {"run/model.safetensors: of another architecture", "32", "16"});
  dir().write("run/model.safetensors", read_file(dir() / "deep/model.safetensors"));
  expect_error("generate run --device cpu --prompt to",
               {"run/model.safetensors: of another architecture", "layers.1.", "not in the model"});
  dir().write("run/model.safetensors", good);

  const auto resume = train("tiny.yaml --out run --resume --set training.steps=6");
  expect_error(resume + " --set model.d_model=32",
               {"run/config.yaml", "model.d_model=16, not 32", "--overwrite", "--out"});
  const auto stored = read_file(dir() / "run/checkpoints/step-4/model.safetensors");
  dir().write("run/checkpoints/step-4/model.safetensors", read_file(dir() / "wide/model.safetensors"));
  expect_error(resume, {"run/checkpoints/step-4/model.safetensors: of another architecture"});
  dir().write("run/checkpoints/step-4/model.safetensors", stored);
}

/// Expects exactly one line of error, after the messages of the training.
void expect_full_disk(const Outcome& outcome, const std::string& path) {
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  const auto at = outcome.err.rfind('\n', outcome.err.size() - 2);
  const auto last = outcome.err.substr(at == outcome.err.npos ? 0 : at + 1);
  EXPECT_THAT(last, StartsWith("zoo: "));
  EXPECT_THAT(last, HasSubstr(path));
  EXPECT_THAT(last, HasSubstr("File too large"));
  EXPECT_EQ(outcome.err.find("zoo: "), outcome.err.rfind("zoo: ")) << outcome.err;
}

TEST_F(Errors, OfAFullDiskLoseNothing) {
  const std::string more = " --set training.steps=8 --resume";
  ASSERT_EQ(zoo(train("tiny.yaml --out whole" + more)).code, 0);
  fs::copy(dir() / "run", dir() / "part", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto before = files_below(dir() / "part");
  // With 1 byte nothing can be written; with more space, metrics and samples can, but not the weights.
  for (const rlim_t space : {1U, 1000U, 6000U}) {
    SCOPED_TRACE(fmt::format("{} bytes", space));
    expect_full_disk(zoo(train("tiny.yaml --out part" + more), {.disk_space = space}), "part/");
    auto after = files_below(dir() / "part");
    for (const char* grows : {"metrics.jsonl", "samples.txt"}) after[grows].resize(before.at(grows).size());
    // The configuration may already have the new number of steps.
    EXPECT_THAT(differences(before, after), IsSubsetOf({"config.yaml"}));
    for (const auto& [name, content] : after) EXPECT_THAT(name, Not(HasSubstr(".new")));
    EXPECT_EQ(zoo("evaluate part --device cpu").code, 0);
  }
  // With enough room, the run continues as if nothing had happened.
  ASSERT_EQ(zoo(train("tiny.yaml --out part" + more)).code, 0);
  EXPECT_THAT(lasting_differences(dir() / "whole", dir() / "part"), IsEmpty());
}

TEST_F(Errors, OfAFullDiskForOtherFiles) {
  expect_full_disk(zoo(train("tiny.yaml --out fresh"), {.disk_space = 1}), "fresh/");
  EXPECT_EQ(zoo(train("tiny.yaml --out fresh")).code, 0) << "it can begin where nothing was written";
  expect_full_disk(zoo("attention run --device cpu --text to --out page.html", {.disk_space = 1000}),
                   "page.html");
  EXPECT_FALSE(fs::exists(dir() / "page.html"));
  expect_full_disk(zoo("tokenizer train --type char --out vocabulary text.txt", {.disk_space = 1}),
                   "vocabulary/");
}

TEST_F(Errors, OfClosedStreams) {
  for (const char* command : {"config >/dev/full", "--help >/dev/full", "config >&-", "inspect run >&-",
                              "evaluate run --device cpu >&-", "generate run --device cpu --prompt to >&-",
                              "tokenizer encode run --text to >&-"}) {
    SCOPED_TRACE(command);
    const auto outcome = zoo(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, EndsWith("zoo: cannot write to standard output\n"));
  }
  // Printed text must not land in the files of the run, which could get the free file numbers.
  ASSERT_EQ(zoo(train("tiny.yaml --out silent <&- >&- 2>&-")).code, 0);
  EXPECT_THAT(lasting_differences(dir() / "run", dir() / "silent"), IsEmpty());
  EXPECT_EQ(zoo("generate run --device cpu --max-new-tokens 3 <&-").code, 0) << "a text from nothing";
}

}  // namespace
}  // namespace zoo::testing
