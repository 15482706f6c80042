// zoo tokenizer: makes vocabularies, and turns text into token ids and back.

#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/token_ids.h"
#include "apps/use/render_chat.h"
#include "base/error.h"
#include "interop/stored_texts.h"
#include "io/files.h"
#include "io/json_document.h"
#include "tasks/preparation.h"
#include "text/corpus.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

nlohmann::ordered_json special_json(const SpecialTokens& special) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, id] : named_ids(special)) json[std::string(name)] = id;
  return json;
}

void print_json(const nlohmann::ordered_json& document) {
  // Bytes that are not UTF-8 become U+FFFD.
  std::cout << shown_json(document) << '\n';
}

/// Calls `use` with each line of standard input. Throws DataError if there is none.
void for_each_line(const std::function<void(const std::string&)>& use) {
  int64_t n = 0;
  for (std::string line; std::getline(std::cin, line); ++n) {
    if (line.ends_with('\r')) line.pop_back();
    use(line);
  }
  if (n == 0) throw DataError("standard input is empty: write at least one line, or see --help for options");
}

// ---- train

struct TrainTokenizerArguments {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out;
  TokenizerConfig config;
  DocumentSplit documents = DocumentSplit::none;
  TextNormalization normalization = TextNormalization::none;
  bool byte_fallback = true, no_special = false, json = false;
};

/// The whole of each file: no part is kept back for validation.
DataConfig corpus_of(const TrainTokenizerArguments& arguments) {
  DataConfig corpus;
  for (const auto& file : arguments.files) corpus.train.push_back(std::filesystem::absolute(file).string());
  corpus.valid = corpus.train;
  corpus.documents = arguments.documents;
  return corpus;
}

void train_tokenizer(const TrainTokenizerArguments& arguments) {
  auto config = arguments.config;
  if (config.type == TokenizerKind::hub)
    throw UsageError(
        "--type: a tokenizer of the Hub is not trained here: take char, byte, sentencepiece, bpe or "
        "wordpiece");
  config.normalization = arguments.normalization;
  config.byte_fallback = arguments.byte_fallback;
  const auto corpus = corpus_of(arguments);
  if (const auto note = learning_note(config, corpus)) std::cerr << *note << '\n';
  const auto texts = read_documents(corpus, Split::train);
  const auto set = arguments.no_special ? SpecialTokenSet::none : SpecialTokenSet::all;
  const auto tokenizer = make_tokenizer(config, set, [&](const auto& sink) {
    for (const auto& text : texts) sink(text);
  });
  if (const auto note = vocabulary_note(config, *tokenizer)) std::cerr << *note << '\n';
  make_directory(arguments.out);
  if (config.type == TokenizerKind::bpe || config.type == TokenizerKind::wordpiece) {
    export_files(*tokenizer, arguments.out, /*frame=*/{});  // a directory as those of the Hub
  } else {
    tokenizer->save(arguments.out);
  }
  if (arguments.json) {
    print_json({{"path", arguments.out.string()},
                {"type", name_of(config.type)},
                {"vocab_size", tokenizer->vocab_size()},
                {"special", special_json(tokenizer->special())}});
  } else {
    std::cout << fmt::format("{}: {} tokenizer, {} tokens\n", arguments.out.string(), name_of(config.type),
                             tokenizer->vocab_size());
  }
}

void add_train_tokenizer(CLI::App& app) {
  const auto arguments = std::make_shared<TrainTokenizerArguments>();
  auto& config = arguments->config;
  auto* command = app.add_subcommand("train", "Make a vocabulary from text files");
  const auto add_name = [&]<class E>(const char* option, E& value, const char* help, const char* what) {
    command->add_option(option, value, help)
        ->transform(one_of<E>())
        ->option_text(fmt::format("{} [{}]", what, name_of(value)));
  };
  command->add_option("FILE", arguments->files, "Text files (UTF-8)")->type_name("")->required();
  command->add_option("--out", arguments->out, "Directory to write tokenizer.json and tokenizer.model to")
      ->type_name("DIR")
      ->required();
  add_name("--type", config.type, "char, byte, sentencepiece, bpe (of bytes) or wordpiece", "TYPE");
  command->add_option("--vocab-size", config.vocab_size, "Tokens (sentencepiece, bpe, wordpiece)")
      ->check(whole_number(8, 1000000))
      ->option_text(fmt::format("N={}", config.vocab_size));
  add_name("--model", config.model, "unigram or bpe (sentencepiece)", "MODEL");
  command
      ->add_option("--character-coverage", config.character_coverage,
                   "Share of the text's characters that get their own token (sentencepiece)")
      ->check(number(0.98, 1))
      ->option_text(fmt::format("P={}", config.character_coverage));
  add_name("--documents", arguments->documents,
           "none, line, blank_line or percent: where texts end, as data.documents; line breaks within texts "
           "get a token",
           "SPLIT");
  add_name("--normalization", arguments->normalization,
           "none or nfkc, as data.tokenizer has it (sentencepiece)", "TYPE");
  command->add_flag("--byte-fallback,!--no-byte-fallback", arguments->byte_fallback,
                    "Bytes or <unk> for characters without a token (sentencepiece; default: bytes)");
  command->add_flag("--lowercase", config.lowercase, "Convert the text to lower case first");
  command->add_flag("--no-special", arguments->no_special, "No special tokens (<pad>, <bos>, <eos>, …)");
  add_json(*command, arguments->json);
  command->callback([arguments] { train_tokenizer(*arguments); });
}

/// The tokenizer that a subcommand uses.
void add_source(CLI::App& command, std::filesystem::path& dir) {
  command
      .add_option("RUN|DIR", dir,
                  "A run, a directory with a tokenizer of the Hugging Face Hub, or a GGUF file")
      ->type_name("DIR")
      ->required();
}

// ---- encode

struct EncodeArguments {
  std::filesystem::path dir, base;
  std::vector<std::string> texts;
  bool offsets = false, json = false;
};

// {"results": [{"text", "ids", "tokens", "offsets"}]}, one result per text; without --json, one line of ids
// per text, or of id:begin-end. Offsets are code points of the text.
void encode(const EncodeArguments& arguments) {
  const auto tokenizer = open_stored_tokenizer(arguments.dir, arguments.base);
  auto results = nlohmann::ordered_json::array();
  const auto encode_one = [&](const std::string& text) {
    TokenIds ids;
    auto offsets = nlohmann::ordered_json::array();
    std::vector<std::string> places;
    if (arguments.offsets) {
      for (const auto& [id, begin, end] : tokenizer->encode_with_places(text)) {
        ids.push_back(id);
        offsets.push_back({begin, end});
        places.push_back(fmt::format("{}:{}-{}", id, begin, end));
      }
    } else {
      ids = tokenizer->encode(text);
    }
    if (!arguments.json) {
      std::cout << (arguments.offsets ? fmt::format("{}\n", fmt::join(places, ","))
                                      : fmt::format("{}\n", fmt::join(ids, ",")));
      return;
    }
    std::vector<std::string> tokens;
    for (const int64_t id : ids) tokens.push_back(tokenizer->label(id));
    results.push_back({{"text", text}, {"ids", ids}, {"tokens", tokens}});
    if (arguments.offsets) results.back()["offsets"] = offsets;
  };
  for (const auto& text : arguments.texts) encode_one(text);
  if (arguments.texts.empty()) for_each_line(encode_one);
  if (arguments.json) print_json({{"results", results}});
}

void add_encode(CLI::App& app) {
  const auto arguments = std::make_shared<EncodeArguments>();
  auto* command = app.add_subcommand("encode", "Token ids of texts, or of each line of standard input");
  add_source(*command, arguments->dir);
  command->add_option("--text", arguments->texts, "A text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_flag("--offsets", arguments->offsets,
                    "Where each token stands in the text: code points, from and up to but not including");
  add_base(*command, arguments->base);
  add_json(*command, arguments->json, "One JSON document on standard output, with the tokens");
  command->callback([arguments] { encode(*arguments); });
}

// ---- decode

struct DecodeArguments {
  std::filesystem::path dir, base;
  std::optional<std::string> ids;
  bool json = false;
};

/// "1,2,3", "1 2 3" or "[1, 2, 3]".
TokenIds ids_in(std::string_view text) {
  constexpr std::string_view separators = ", \t[]";
  TokenIds ids;
  for (size_t begin = text.find_first_not_of(separators); begin != text.npos;) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    ids.push_back(parse_token_id(text.substr(begin, end - begin)));
    begin = text.find_first_not_of(separators, end);
  }
  return ids;
}

// {"results": [{"ids", "text"}]}, one result per list of ids; without --json, each text and a line break.
void decode(const DecodeArguments& arguments) {
  const auto tokenizer = open_stored_tokenizer(arguments.dir, arguments.base);
  auto results = nlohmann::ordered_json::array();
  const auto decode_one = [&](const std::string& line) {
    const auto ids = ids_in(line);
    const auto text = tokenizer->decode(ids);
    if (arguments.json) {
      results.push_back({{"ids", ids}, {"text", text}});
    } else {
      std::cout << text << '\n';
    }
  };
  arguments.ids ? decode_one(*arguments.ids) : for_each_line(decode_one);
  if (arguments.json) print_json({{"results", results}});
}

void add_decode(CLI::App& app) {
  const auto arguments = std::make_shared<DecodeArguments>();
  auto* command = app.add_subcommand("decode", "Text of token ids, or of each line of ids on standard input");
  add_source(*command, arguments->dir);
  command->add_option("--ids", arguments->ids, "The ids: 1,2,3")->type_name("IDS");
  add_base(*command, arguments->base);
  add_json(*command, arguments->json);
  command->callback([arguments] { decode(*arguments); });
}

}  // namespace

void add_tokenizer(CLI::App& app) {
  auto* command = app.add_subcommand("tokenizer", "Make a vocabulary; turn text into token ids and back");
  command->require_subcommand(1);
  add_train_tokenizer(*command);
  add_encode(*command);
  add_decode(*command);
  add_render_chat(*command);
}

}  // namespace zoo
