#include "data/data_config.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {

namespace {

bool has_file_or_directory(const std::filesystem::path& path) {
  return has_file(path) || has_directory(path);
}

}  // namespace

void describe(ConfigVisitor& v, TokenizerConfig& c) {
  v.field("type", c.type,
          "How text is cut into tokens: code points, bytes, pieces of words, or as a directory of the "
          "Hugging Face "
          "Hub says.");
  v.field(
      "vocab_size", c.vocab_size,
      "sentencepiece: number of tokens, including special ones; fewer if the text has not so many pieces.",
      Limits::between(8, 1e6));
  v.field("model", c.model, "sentencepiece: training algorithm.");
  v.field("character_coverage", c.character_coverage,
          "sentencepiece: share of the text's characters that get a token; the rest become <unk>, or bytes.",
          Limits::between(0.98, 1));
  v.field("normalization", c.normalization,
          "sentencepiece: none changes nothing (default); nfkc replaces fullwidth letters, ligatures and the "
          "like by usual ones, and runs of blanks by one.");
  v.field("byte_fallback", c.byte_fallback,
          "sentencepiece: characters without a token become their bytes instead of <unk>; 256 of the tokens "
          "are bytes (default true).");
  v.field(
      "special_tokens", c.special_tokens,
      "Whether the vocabulary has <pad>, <bos>, <eos>, <mask>, <cls> and <sep>; default: for sentencepiece, "
      "bpe and wordpiece, and where the task needs them.");
  v.field("lowercase", c.lowercase, "Fold upper case to lower case before anything else.");
  v.field("path", c.path,
          "sentencepiece: use this model file instead of training one, with the normalization of a "
          "tokenizer.json beside it that belongs to it. hub: the directory with the tokenizer's files.");
}

void describe(ConfigVisitor& v, DataConfig& c) {
  const auto of_texts = [&](const auto& keys) {
    v.only_for({"language_modeling", "masked_language_modeling", "marked_tokens", "text_to_text", "choices",
                "text_classification", "token_classification", "text_features", "image_text_similarity",
                "speech_recognition"},
               keys);
  };
  v.field(
      "train", c.train,
      "Training files, or directories of images. They are looked for beside the file that names them, in "
      "the working directory, and "
      "in the data root ($ZOO_DATA, else ./datasets). text_to_text: each is a prefix, for PREFIX.source "
      "and PREFIX.target, or a table with the columns source and target. speech_recognition: each is a list "
      "(NAME.tsv) with the columns audio, text and, if known, speaker. structure_prediction: each is a "
      "folder of "
      "PDB and mmCIF files, one such file, or a table with the columns file and, if wanted, chain.");
  v.field("valid", c.valid, "Validation files; none = use the end of the training text.");
  v.field("test", c.test, "Test files, for `zoo evaluate`.");
  v.field("valid_fraction", c.valid_fraction,
          "Without validation files: share of the training text, from its end, that is used for validation; "
          "of rows with a class and of pictures, this share of each class.",
          {.min = 0, .max = 0.9, .min_excluded = true});
  v.only_for({"language_modeling", "masked_language_modeling", "marked_tokens"}, [&] {
    v.field(
        "documents", c.documents,
        "How a text file is divided into documents; `percent`: lines of % separate them. With `none`, each "
        "file is one document. Otherwise each row of a table (NAME.tsv, NAME.jsonl, NAME.parquet) is one.");
  });
  v.only_for({"language_modeling"}, [&] {
    v.field(
        "chat", c.chat,
        "language_modeling by a decoder: train on conversations (NAME.jsonl, an object with \"messages\" a "
        "line), as the chat template of the tokenizer writes them. Only the answers of the assistant are "
        "predicted.");
  });
  v.only_for({"text_to_text"}, [&] {
    v.field("source", c.source, "text_to_text: suffix of the source files.");
    v.field("target", c.target, "text_to_text: suffix of the target files.");
  });
  v.only_for(
      {"language_modeling", "masked_language_modeling", "marked_tokens", "text_to_text",
       "text_classification", "token_classification", "text_features", "image_text_similarity",
       "speech_recognition"},
      [&] {
        v.field(
            "text_column", c.text_column,
            "Name of the text column in a table: tab-separated (NAME.tsv; for text_classification any file), "
            "lines "
            "of JSON (NAME.jsonl) or Parquet (NAME.parquet). With several names, the first one that the "
            "table has "
            "is used. outer.inner is a column in a column.");
      });
  v.only_for({"text_classification"}, [&] {
    v.field(
        "pair_column", c.pair_column,
        "text_classification: name of the column of second texts, or several as in text_column: pairs of "
        "texts are classified. Default none. Needs an encoder, or a tokenizer that says what stands around "
        "pairs.");
  });
  v.field(
      "document_column", c.document_column,
      "Name of a column in the tables of `valid` and `test`. Rows with equal entries belong together, such "
      "as the sentences of an article or the recordings of a speaker: `zoo compare` of finished models "
      "draws and exchanges them together. Default none.");
  v.only_for({"text_classification", "token_classification", "image_classification"}, [&] {
    v.field("label_column", c.label_column,
            "text_classification, token_classification: name of the label column.");
    v.field("label_separator", c.label_separator,
            "task.problem multi_label: what stands between the labels of one input. A list in JSON is read, "
            "too.");
  });
  v.only_for({"token_classification"}, [&] {
    v.field(
        "label_unit", c.label_unit,
        "token_classification: whether each word of a text has a label, or each character. auto: each "
        "character if the texts are single words and the classes single characters, as residues of proteins "
        "are.");
  });
  v.only_for({"marked_tokens"}, [&] {
    v.field("answer_mark", c.answer_mark,
            "marked_tokens: the token after each of these is predicted; default \"=\".");
  });
  of_texts([&] {
    v.field("sequence_length", c.sequence_length, "Longest sequence in tokens; longer ones are cut.",
            Limits::between(3, 1e7));
  });
  v.only_for({"text_to_text"}, [&] {
    v.field("target_length", c.target_length,
            "text_to_text: the same for target sequences; default sequence_length.", Limits::between(3, 1e7));
  });
  v.only_for({"language_modeling"}, [&] {
    v.field(
        "prefix_length", c.prefix_length,
        "language_modeling: number of tokens of a window that are given, not predicted. The encoder of an "
        "encoder_decoder reads them (default half of sequence_length). A decoder uses them only in "
        "evaluation (default 1).",
        Limits::at_least(1));
    v.field(
        "fill_in_the_middle", c.fill_in_the_middle,
        "language_modeling by a decoder: share of the documents that training reads as <fim_prefix> "
        "beginning "
        "<fim_suffix> end <fim_middle> middle, so that the model learns to fill gaps. Needs a tokenizer of "
        "type bpe, or hub if it has these tokens.",
        Limits::between(0, 1));
    v.field("suffix_first", c.suffix_first,
            "fill_in_the_middle: share of these documents that are read as <fim_prefix> <fim_suffix> end "
            "<fim_middle> beginning middle instead, where the middle follows what it continues.",
            Limits::between(0, 1));
  });
  v.field("bucket_by_length", c.bucket_by_length,
          "Put sequences of similar lengths into a batch: less padding.");
  v.only_for({"masked_language_modeling"}, [&] {
    v.field("mask_probability", c.mask_probability,
            "masked_language_modeling: share of the tokens to predict.",
            {.min = 0, .max = 1, .min_excluded = true});
    v.field("mask_replace", c.mask_replace,
            "masked_language_modeling: share of the predicted tokens that <mask> replaces.",
            Limits::between(0, 1));
    v.field(
        "mask_random", c.mask_random,
        "masked_language_modeling: share of the predicted tokens that a random token replaces; the rest are "
        "unchanged.",
        Limits::between(0, 1));
  });
  v.only_for({"token_classification"}, [&] {
    v.field("hide_probability", c.hide_probability,
            "token_classification: in training, share of the tokens that <mask> replaces, others in each "
            "epoch. The model then learns to rely on several neighbours.",
            {.min = 0, .max = 0.9});
  });
  v.only_for({"choices", "language_modeling"}, [&] {
    v.field("choices", c.choices,
            "Questions whose answer is one of a few texts, chosen by their likelihood.");
  });
  v.only_for({"image_classification", "image_features", "image_text_similarity", "object_detection"},
             [&] { v.field("images", c.images, "image_classification: how images become inputs."); });
  v.only_for({"speech_recognition"},
             [&] { v.field("audio", c.audio, "speech_recognition: how recordings become inputs."); });
  v.only_for({"structure_prediction"}, [&] {
    v.field("structures", c.structures, "structure_prediction: how structures become inputs.");
  });
  of_texts([&] { v.field("tokenizer", c.tokenizer, "How text becomes tokens."); });
}

void validate(const DataConfig& c, const Complain& complain) {
  if (c.mask_replace + c.mask_random > 1 + 1e-9) {
    complain("mask_random",
             fmt::format("and mask_replace add up to {}, more than 1", c.mask_replace + c.mask_random));
  }
  const bool is_hub = c.tokenizer.type == TokenizerKind::hub;
  const bool has_path = !c.tokenizer.path.text.empty();
  if (has_path && !is_hub && c.tokenizer.type != TokenizerKind::sentencepiece) {
    complain("tokenizer.path",
             fmt::format("is for types sentencepiece and hub, not {}", name_of(c.tokenizer.type)));
  }
  if (is_hub && !has_path) complain("tokenizer.path", "is missing: type hub needs the tokenizer's directory");
  if (is_hub && c.tokenizer.lowercase)
    complain("tokenizer.lowercase", "is not for type hub, whose files say what happens to the text");
  if (has_path && (c.tokenizer.normalization || c.tokenizer.byte_fallback || c.tokenizer.special_tokens)) {
    complain(
        "tokenizer.path",
        "names a model, which has its own normalization, byte_fallback and special_tokens: remove those");
  }
  if (c.prefix_length && *c.prefix_length > c.sequence_length) {
    complain("prefix_length",
             fmt::format("{} is longer than sequence_length {}", *c.prefix_length, c.sequence_length));
  }
  const auto kind = c.tokenizer.type;
  if (c.fill_in_the_middle > 0 && kind != TokenizerKind::bpe && kind != TokenizerKind::hub) {
    complain("fill_in_the_middle",
             fmt::format("needs a tokenizer of type bpe or hub, not {}", name_of(c.tokenizer.type)));
  }
  if (c.source == c.target) complain("target", "must differ from `source`");
  validate(c.images, complain_under("images", complain));
  validate(c.audio, complain_under("audio", complain));
  if (!c.document_column.empty() && c.valid.empty()) {
    complain("document_column",
             "needs data.valid: the rows of a document could be in training and in validation data");
  }
  if (c.text_column.empty()) complain("text_column", "names no column");
  if (is_blank(c.label_separator)) complain("label_separator", "is empty or blank: name a sign, such as |");
}

void pin_files(DataConfig& c) {
  const auto has_file_or_prefix = [&](const std::filesystem::path& path) {
    return has_file_or_directory(path) || has_file(path.string() + "." + c.source);
  };
  for (auto* const paths : {&c.train, &c.valid, &c.test}) {
    for (auto& path : *paths) path = pinned(path, has_file_or_prefix);
  }
  for (auto* const paths : {&c.choices.files, &c.choices.shots_from}) {
    for (auto& path : *paths) path = pinned(path, has_file);
  }
  c.tokenizer.path = pinned(c.tokenizer.path, has_file_or_directory);
}

namespace {

/// Throws DataError: `path` leads to nothing of the kind `wanted`.
[[noreturn]] void fail_missing(const ConfigPath& path, std::string_view wanted) {
  std::error_code ignored;
  const auto other =
      find_path(path, [&](const auto& candidate) { return std::filesystem::exists(candidate, ignored); });
  if (other) throw DataError(fmt::format("{} is not {}", other->string(), wanted));

  const std::filesystem::path given(path.text);
  auto message = fmt::format("{} does not exist{}", excerpt(path.text, 300), places_of(path));
  constexpr auto corpora = std::to_array<std::string_view>({"debian-packages",
                                                            "dict-de-en",
                                                            "messages-de-en",
                                                            "fortunes",
                                                            "tinyshakespeare",
                                                            "wikitext-2",
                                                            "multi30k",
                                                            "sst2",
                                                            "fashion-mnist",
                                                            "fsdd",
                                                            "fsdd-strings",
                                                            "espeak",
                                                            "nottingham",
                                                            "python-stdlib",
                                                            "proteins",
                                                            "structures",
                                                            "listops",
                                                            "associative-recall",
                                                            "copy",
                                                            "addition",
                                                            "canvases",
                                                            "mad",
                                                            "state-tracking",
                                                            "mano",
                                                            "depo",
                                                            "pixels"});
  const std::string first = given.begin() == given.end() ? std::string() : given.begin()->string();
  if (std::ranges::find(corpora, first) != corpora.end())
    message += fmt::format("; get it with `scripts/get_data.sh {}`", first);
  throw DataError(message);
}

}  // namespace

std::filesystem::path data_path(const ConfigPath& path) {
  if (const auto file = find_path(path, has_file)) return *file;
  fail_missing(path, "a file");
}

std::filesystem::path data_file_or_directory(const ConfigPath& path) {
  if (const auto place = find_path(path, has_file_or_directory)) return *place;
  fail_missing(path, "a file or a directory");
}

}  // namespace zoo
