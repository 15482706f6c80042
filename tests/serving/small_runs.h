#pragma once
// Small models with random weights on the disk, as a service opens them.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "tasks/experiment.h"
#include "tasks/task.h"
#include "tests/support/environment.h"
#include "tests/support/small_recordings.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

/// Runs in a directory of their own: "writer" (a decoder that chats), "translator", "filler", "classifier",
/// "ranker" (of pairs of texts), "listener" and "scribe" (of recordings).
class SmallRuns {
 public:
  SmallRuns() {
    std::string text, reversed, table = "sentence\tlabel\n", scores = "sentence\tother\tlabel\n";
    for (int i = 0; i < 60; ++i) {
      std::string line;
      for (int j = 0; j < 3 + i % 5; ++j) line += static_cast<char>('a' + (i * 5 + j * 3) % 8);
      text += line + "\n";
      reversed += std::string(line.rbegin(), line.rend()) + "\n";
      table += line + (i % 2 == 0 ? "\tred\n" : "\tblue\n");
      scores += line + "\tabc\t" + std::to_string(i / 7.0) + "\n";
    }
    dir_.write("text.txt", text);
    dir_.write("pairs.de", text);
    dir_.write("pairs.en", reversed);
    dir_.write("table.tsv", table);
    dir_.write("scores.tsv", scores);
    nlohmann::ordered_json vocabulary;
    for (const std::string token : {"a", "b", "c", "d", "e", "f", "g", "h", "Ġ", ">", "\"", "{", "}", ":",
                                    ",", "[", "]", "0", "1", "2", "3", "4", "5", "6", "7",  "8", "9"})
      vocabulary[token] = vocabulary.size();
    dir_.write("hub/tokenizer.json", tokenizer_json(vocabulary));
    dir_.write("hub/tokenizer_config.json",
               nlohmann::json({{"eos_token", "</s>"},
                               {"chat_template",
                                "{% for m in messages %}<s>{{ m.content }}{% endfor %}"
                                "{{ '>' if add_generation_prompt }}"}})
                   .dump());
  }

  const TempDir& dir() const { return dir_; }

  std::filesystem::path writer(const std::string& name = "writer") const {
    return add(name, "language_modeling", "text.txt", "decoder, position: rotary", "{type: hub, path: hub}");
  }
  /// A writer that proposes tokens of its prompt.
  std::filesystem::path looker() const {
    return add("looker", "language_modeling", "text.txt", "decoder, position: rotary",
               "{type: hub, path: hub}", 256, "generation: {prompt_lookup: 4}\n");
  }
  /// A writer whose answers may be very long.
  std::filesystem::path talker() const {
    return add("talker", "language_modeling", "text.txt", "decoder, position: rotary",
               "{type: hub, path: hub}", 100'000);
  }
  std::filesystem::path translator() const {
    return add("translator", "text_to_text", "pairs", "encoder_decoder", "{type: char}");
  }
  std::filesystem::path filler() const {
    return add("filler", "masked_language_modeling", "text.txt", "encoder", "{type: char}");
  }
  std::filesystem::path classifier() const {
    return add("classifier", "text_classification", "table.tsv", "encoder", "{type: char}");
  }
  /// A decoder that chats about tools as Qwen does; it has a token for each character of ASCII, and those of
  /// gaps.
  std::filesystem::path caller() const {
    return caller("caller", {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, {},
                  "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
                  "{{ c.function.arguments | tojson }}}\n</tool_call>");
  }
  /// The same with a template that writes each call as `call`. Special tokens have no text, plain ones have.
  /// Their ids are 98, 99, …, the special ones first.
  std::filesystem::path caller(const std::string& name, std::vector<std::string> special,
                               const std::vector<std::string>& plain, const std::string& call) const {
    special.insert(special.begin(), {"<s>", "</s>"});
    dir_.write(name + "-tools/tokenizer.json", tokenizer_json(characters(), special, plain));
    dir_.write(name + "-tools/tokenizer_config.json",
               nlohmann::json({{"eos_token", "</s>"},
                               {"chat_template",
                                "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}"
                                "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}"
                                "{% for c in m.tool_calls or [] %}" +
                                    call +
                                    "{% endfor %}{% endfor %}"
                                    "{% if add_generation_prompt %}<s>assistant: {% endif %}"}})
                   .dump());
    return add(name, "language_modeling", "text.txt", "decoder, position: rotary",
               fmt::format("{{type: hub, path: {}-tools}}", name), 2048);
  }
  std::filesystem::path ranker() const {
    return add("ranker", "{type: text_classification, problem: regression}", "scores.tsv, pair_column: other",
               "encoder, n_segments: 2", "{type: char}");
  }
  /// A model of recordings of at most two seconds, which is trained with CTC. heard/sounds/0.wav is one.
  std::filesystem::path listener(const std::string& task = "speech_recognition",
                                 const std::string& name = "listener") const {
    write_recordings(dir_, "heard/");
    return add(name, task,
               "heard/recordings.tsv, audio: {sample_rate: 8000, n_mels: 12, n_fft: 200, hop: 80, "
               "max_seconds: 2}",
               "{type: speech_encoder, max_frames: 200}, position: sinusoidal", "{type: char}");
  }
  /// One with a decoder that writes, as Whisper's, whose outputs begin with the token <|en|>; there is
  /// <|de|>.
  std::filesystem::path scribe() const {
    write_recordings(dir_, "heard/");
    dir_.write("scribe-hub/tokenizer.json",
               tokenizer_json(characters(), {"<s>", "</s>", "<|en|>", "<|de|>"}));
    dir_.write("scribe-hub/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
    return add("scribe", "speech_recognition",
               "heard/recordings.tsv, audio: {sample_rate: 8000, n_mels: 12, n_fft: 200, hop: 80, "
               "max_seconds: 2, padding: longest}",
               "{type: whisper, max_frames: 200}", "{type: hub, path: scribe-hub}", 256,
               "generation: {start_tokens: [98], max_new_tokens: 12}\n");
  }

 private:
  /// Those of ASCII, and a blank and a line break.
  static nlohmann::ordered_json characters() {
    nlohmann::ordered_json vocabulary;
    for (char c = '!'; c <= '~'; ++c) vocabulary[std::string(1, c)] = vocabulary.size();
    for (const char* const blank : {"Ġ", "Ċ"}) vocabulary[blank] = vocabulary.size();
    return vocabulary;
  }
  /// A token for each byte, and special ones.
  static std::string tokenizer_json(const nlohmann::ordered_json& vocabulary,
                                    const std::vector<std::string>& special = {"<s>", "</s>"},
                                    const std::vector<std::string>& plain = {}) {
    auto added = nlohmann::ordered_json::array();
    const auto add = [&](const std::string& content, const nlohmann::ordered_json& is_special) {
      const size_t id = vocabulary.size() + added.size();
      added.push_back({{"id", id}, {"content", content}, {"special", is_special}});
    };
    for (const auto& content : special) add(content, true);
    for (const auto& content : plain) add(content, false);
    return nlohmann::ordered_json{
        {"added_tokens", added},
        {"normalizer", nullptr},
        {"post_processor", nullptr},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
        {"decoder", {{"type", "ByteLevel"}}},
        {"model", {{"type", "BPE"}, {"merges", nlohmann::ordered_json::array()}, {"vocab", vocabulary}}}}
        .dump();
  }

  /// Its weights are large and untied, so that its outputs depend on everything that it reads.
  std::filesystem::path add(const std::string& name, const std::string& task, const std::string& train,
                            const std::string& architecture, const std::string& tokenizer,
                            int64_t max_positions = 256, const std::string& more = "") const {
    const ScopedEnvironment data("ZOO_DATA", dir_.path().string());
    const auto file =
        dir_.write(name + ".yaml",
                   fmt::format("task: {}\ndata: {{train: {}, sequence_length: 32, tokenizer: {}}}\n"
                               "model: {{architecture: {}, d_model: 24, n_layers: 2, n_heads: 2, d_ff: 48, "
                               "max_positions: {}, init_std: 0.6, tie_embeddings: false}}\n{}",
                               task, train, tokenizer, architecture, max_positions, more));
    const auto experiment = load_experiment(file);
    const auto opened = task_with_vocabulary(experiment, {});
    torch::manual_seed(7);
    const auto model = initialized_model(experiment, *opened);
    write_run(dir_ / name, experiment, opened->vocabulary(), *model);
    return dir_ / name;
  }

  TempDir dir_;
};

}  // namespace zoo::testing
