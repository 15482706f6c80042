#include "tokenizers/hub_tokenizer.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/files.h"
#include "tests/data/support.h"
#include "tests/support/temp_dir.h"
#include "tokenizers/id_tokenizer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using ::testing::Not;
using testing::TempDir;
using Json = nlohmann::json;

/// "the", "▁", … as bytes of GPT-2, with one special token.
Json byte_level() {
  Json vocab = {{"<end>", 0}};
  std::vector<std::string> characters;
  for (int byte = 0, next = 256; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int c = printable ? byte : next++;
    std::string text;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
    vocab[text] = byte + 1;
  }
  vocab["Ġt"] = 257;
  vocab["he"] = 258;
  vocab["Ġthe"] = 259;
  return {{"added_tokens", {{{"id", 0}, {"content", "<end>"}, {"special", true}, {"normalized", false}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", vocab},
            {"merges", Json::array({"Ġ t", "h e", Json::array({"Ġt", "he"})})}}}};
}

std::unique_ptr<Tokenizer> tokenizer_of(const Json& document) {
  return make_hub_tokenizer({{"tokenizer.json", document.dump()}}, {.eos = 0});
}

std::string problem_of(const Json& document) {
  return message_of<DataError>([&] { tokenizer_of(document); });
}

TEST(HubTokenizer, MergesAndFindsSpecialTokens) {
  const auto tokenizer = tokenizer_of(byte_level());
  EXPECT_THAT(tokenizer->encode(" the the<end>"), ElementsAre(259, 259, 0));
  EXPECT_EQ(tokenizer->decode(TokenIds{259, 0, 259}), " the the");
  EXPECT_EQ(tokenizer->label(259), "▁the");
  EXPECT_EQ(tokenizer->label(0), "<end>");
  EXPECT_EQ(tokenizer->label('\n' + 1), "↵");
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  EXPECT_THAT(tokenizer->encode(""), IsEmpty());
  EXPECT_TRUE(tokenizer->joins_blanks());
  EXPECT_TRUE(tokenizer->keeps_text());
  EXPECT_THAT(tokenizer->frame()->before, IsEmpty());
}

// Of equal pairs the first one is merged.
TEST(HubTokenizer, MergesFromTheLeft) {
  auto document = byte_level();
  document["model"]["vocab"]["aa"] = 260;
  document["model"]["merges"].push_back("a a");
  const auto tokenizer = tokenizer_of(document);
  EXPECT_THAT(tokenizer->encode("aaa"), ElementsAre(260, 'a' + 1));
  EXPECT_THAT(tokenizer->encode("aaaaa"), ElementsAre(260, 260, 'a' + 1));
}

// As Llama 3 and tiktoken have it: a piece that is a token is found, whatever the merges lead to.
TEST(HubTokenizer, IgnoresMergesForPiecesThatAreTokens) {
  auto document = byte_level();
  document["model"]["vocab"]["cat"] = 260;   // no merge leads there
  document["model"]["vocab"]["thes"] = 261;  // the merges lead to "t", "he" and "s"
  const auto byte = [](char c) { return static_cast<int64_t>(c) + 1; };
  const auto merging = tokenizer_of(document);
  EXPECT_THAT(merging->encode("cat"), ElementsAre(byte('c'), byte('a'), byte('t')));
  EXPECT_THAT(merging->encode("thes"), ElementsAre(byte('t'), 258, byte('s')));
  document["model"]["ignore_merges"] = true;
  const auto ignoring = tokenizer_of(document);
  EXPECT_THAT(ignoring->encode("cat"), ElementsAre(260));
  EXPECT_THAT(ignoring->encode("thes"), ElementsAre(261));
  // A piece that is longer than a token is merged.
  EXPECT_THAT(ignoring->encode("cats the"), ElementsAre(byte('c'), byte('a'), byte('t'), byte('s'), 259));
}

TEST(HubTokenizer, RefusesTextThatIsNotUtf8AndIdsOutsideTheVocabulary) {
  const auto tokenizer = tokenizer_of(byte_level());
  EXPECT_THAT(message_of<DataError>([&] { tokenizer->encode("ab\xFF"); }), HasSubstr("not UTF-8 at byte 2"));
  EXPECT_THAT(message_of<DataError>([&] { tokenizer->decode(TokenIds{260}); }),
              HasSubstr("260 is not a token id"));
  EXPECT_THAT(message_of<DataError>([] {
                make_hub_tokenizer({{"tokenizer.json", byte_level().dump()}},
                                   {.eos = 1, .other_ends = {260}});
              }),
              HasSubstr("260 is outside the vocabulary"));
}

// A text that is decoded piece by piece is the text that is decoded at once, also of characters in several
// tokens.
TEST(HubTokenizer, StreamsItsText) {
  const auto tokenizer = tokenizer_of(byte_level());
  const std::string text = " the 日本語 the\n\U0001F98A the";
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const int64_t id : tokenizer->encode(text)) streamed += decoder.push(id);
  EXPECT_EQ(streamed + decoder.finish(), text);
}

TEST(HubTokenizer, StreamsTextWhoseBlanksMayGo) {
  const auto tokenizer = make_hub_tokenizer({{"tokenizer.json", byte_level().dump()},
                                             {"tokenizer_config.json",
                                              R"({"clean_up_tokenization_spaces": true,
                           "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": true})"}},
                                            {});
  const std::string text = "I do n't , you 're ' the ' one . n";
  const auto ids = tokenizer->encode(text);
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const int64_t id : ids) streamed += decoder.push(id);
  streamed += decoder.finish();
  EXPECT_EQ(streamed, "I don't, you're'the'one. n");
  EXPECT_EQ(streamed, tokenizer->decode(ids));
}

std::unique_ptr<Tokenizer> with_config(const std::string& config, const SpecialTokens& special = {}) {
  return make_hub_tokenizer({{"tokenizer.json", byte_level().dump()}, {"tokenizer_config.json", config}},
                            special);
}

std::string problem_of_config(const std::string& config) {
  return message_of<DataError>([&] { with_config(config); });
}

// As transformers 5, which takes no blanks from a BPE's texts unless it is forced to.
TEST(HubTokenizer, ABpeKeepsItsBlanks) {
  const auto tokenizer = with_config(R"({"clean_up_tokenization_spaces": true})");
  const std::string text = "I do n't , you";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(HubTokenizer, SpecialTokensAreTextIfTheFileSaysSo) {
  const auto tokenizer =
      with_config(R"({"split_special_tokens": true, "mask_token": "[MASK]"})", {.mask = 260});
  EXPECT_THAT(tokenizer->encode("<end>"), ::testing::SizeIs(5));
  EXPECT_THAT(tokenizer->encode("[MASK]"), ::testing::SizeIs(6));
  EXPECT_THAT(tokenizer->encode_masked(" the<mask>"), ElementsAre(259, 260));
  EXPECT_THAT(problem_of_config(R"({"split_special_tokens": "yes"})"), HasSubstr("damaged"));
}

// transformers gives them ids in the order of the file: names first, then lists.
TEST(HubTokenizer, FurtherTokensOfTheConfigurationAreTokens) {
  const auto named = with_config(R"({"extra_special_tokens": {"image_token": "<z>", "boi_token": "<a>"}})");
  EXPECT_THAT(named->encode("<z><a> the"), ElementsAre(260, 261, 259));
  const auto listed = with_config(R"({"eos_token": "<end>", "audio_token": "<y>",
                                      "extra_special_tokens": ["<z>", {"content": "<a>", "lstrip": true}]})");
  EXPECT_THAT(listed->encode("<a>x  <a><z><y>"), ElementsAre(262, 'x' + 1, 262, 261, 260));
  EXPECT_EQ(listed->decode(TokenIds{260, 259, 262}), " the");
  const auto older =
      with_config(R"({"additional_special_tokens": ["<z>", "<end>"], "extra_special_tokens": {}})");
  EXPECT_THAT(older->encode("<z><end>"), ElementsAre(260, 0));
}

TEST(HubTokenizer, KeysOfTheConfigurationAreKnown) {
  // Files of bert-base-uncased, Llama 3, all-MiniLM-L6-v2, and of transformers 5.
  for (const char* const config :
       {R"({"do_lower_case": true, "model_max_length": 512, "tokenizer_class": "BertTokenizer"})",
        R"({"add_bos_token": true, "add_eos_token": false, "clean_up_tokenization_spaces": true,
            "legacy": null, "eos_token": "<end>", "bos_token": "<end>", "model_input_names": ["input_ids"],
            "model_max_length": 131072, "tokenizer_class": "PreTrainedTokenizerFast", "sp_model_kwargs": {},
            "use_default_system_prompt": false, "spaces_between_special_tokens": false,
            "padding_side": "left", "pad_token_id": 0})",
        R"({"do_basic_tokenize": true, "never_split": null, "max_length": 128, "stride": 0,
            "strip_accents": null, "tokenize_chinese_chars": true, "truncation_side": "right",
            "truncation_strategy": "longest_first", "pad_to_multiple_of": null, "pad_token_type_id": 0,
            "special_tokens_map_file": "/a/b.json", "name_or_path": "a/b", "tokenizer_file": "/c"})",
        R"({"backend": "tokenizers", "is_local": true, "local_files_only": false,
            "tokenizer_class": "TokenizersBackend", "processor_class": "P", "src_lang": null})"})
    EXPECT_NO_THROW(with_config(config)) << config;
  EXPECT_THAT(problem_of_config(R"({"reverse_text": true})"), HasSubstr("reverse_text: true is not known"));
  EXPECT_NO_THROW(with_config(R"({"reverse_text": null})"));
  EXPECT_THAT(problem_of_config(R"({"tokenizer_class": "NllbTokenizerFast", "src_lang": "fra_Latn"})"),
              HasSubstr("src_lang: \"fra_Latn\" is not supported"));
  const auto with_map = [](const std::string& map) {
    make_hub_tokenizer({{"tokenizer.json", byte_level().dump()}, {"special_tokens_map.json", map}}, {});
  };
  EXPECT_NO_THROW(with_map(R"({"eos_token": "<end>", "additional_special_tokens": []})"));
  EXPECT_THAT(message_of<DataError>([&] { with_map(R"({"limit": 5})"); }),
              HasSubstr("limit: this is no token"));
}

TEST(HubTokenizer, AMaskTakesTheBlanksThatItsTokenTakes) {
  const auto tokenizer = with_config(
      R"({"mask_token": {"content": "[M]", "lstrip": true, "normalized": false}})", {.mask = 260});
  const TokenIds expected{'a' + 1, 260, 259, 260};
  EXPECT_EQ(tokenizer->encode("a \t\n[M] the[M]"), expected);
  EXPECT_EQ(tokenizer->encode_masked("a \t\n<mask> the[M]"), expected);
}

// tokenizers' AddedVocabulary: blanks that a token took can be the next token, too.
TEST(HubTokenizer, TokensOfBlanksAreFoundBehindATokenThatTakesThem) {
  auto document = byte_level();
  document["added_tokens"].push_back({{"id", 260}, {"content", "<u>"}, {"special", true}, {"rstrip", true}});
  document["added_tokens"].push_back({{"id", 261}, {"content", "\n\n"}, {"normalized", false}});
  document["added_tokens"].push_back({{"id", 262}, {"content", " the"}, {"normalized", false}});
  const auto tokenizer = tokenizer_of(document);
  EXPECT_THAT(tokenizer->encode("<u>\n\n\nhe"), ElementsAre(260, 261, '\n' + 1, 258));
  EXPECT_THAT(tokenizer->encode("<u>   the"), ElementsAre(260, 262));
}

TEST(IdTokenizer, KnowsIdsAndNoTexts) {
  const IdTokenizer ids(10, {.eos = 9});
  EXPECT_FALSE(ids.has_texts());
  EXPECT_EQ(ids.decode(TokenIds{1, 9}), "");
  EXPECT_THAT(message_of<DataError>([&] { ids.encode("a"); }), HasSubstr("has no tokenizer"));
  EXPECT_THAT(message_of<DataError>([&] { ids.decode(TokenIds{10}); }), HasSubstr("0 to 9"));
  EXPECT_THROW(IdTokenizer(10, {.eos = 10}), DataError);
  TempDir run;
  ids.save(run.path());
  const auto loaded = load_tokenizer(run.path());
  EXPECT_FALSE(loaded->has_texts());
  EXPECT_EQ(loaded->vocab_size(), 10);
  EXPECT_EQ(loaded->special().eos, 9);
}

TEST(HubTokenizer, AContinuationGetsNoBlankBeforeIt) {
  auto document = byte_level();
  document["pre_tokenizer"]["add_prefix_space"] = true;
  const auto tokenizer = tokenizer_of(document);
  EXPECT_THAT(tokenizer->encode("the"), ElementsAre(259));
  EXPECT_THAT(tokenizer->encode_continuation("the"), ElementsAre('t' + 1, 258));
  EXPECT_THAT(tokenizer->encode_continuation(" the"), ElementsAre(259));
  EXPECT_FALSE(tokenizer->keeps_text());
}

TEST(HubTokenizer, NamesWhatIsNotSupported) {
  const auto with = [](const char* part, Json value) {
    auto document = byte_level();
    document[part] = std::move(value);
    return problem_of(document);
  };
  EXPECT_THAT(with("normalizer", {{"type", "Other"}}), HasSubstr("the normalizer 'Other' is not supp"));
  EXPECT_THAT(with("pre_tokenizer", {{"type", "UnicodeScripts"}}),
              HasSubstr("the pre-tokenizer 'UnicodeScripts'"));
  EXPECT_THAT(with("decoder", {{"type", "Other"}}), HasSubstr("the decoder 'Other'"));
  EXPECT_THAT(with("post_processor", {{"type", "Other"}}), HasSubstr("the post-processor 'Other'"));
  EXPECT_THAT(with("model", {{"type", "Other"}, {"vocab", Json::array()}}), HasSubstr("the model 'Other'"));
  for (const char* const regex : {"[a&&b]", "[[a]b]", "\\h", "a{2}+", "(?<n>a)", "(", "[a", "\\p{^Han}"}) {
    const Json split = {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    EXPECT_THAT(with("pre_tokenizer", split), HasSubstr("the regular expression '")) << regex;
  }
  auto document = byte_level();
  document["model"]["dropout"] = 0.1;
  EXPECT_THAT(problem_of(document), HasSubstr("'dropout' is not supported"));
  EXPECT_THAT(message_of<DataError>([] { make_hub_tokenizer({}, {}); }),
              HasSubstr("there is no tokenizer.json"));
  const auto siglip = [](const char* type) {
    make_hub_tokenizer({{"tokenizer.json", byte_level().dump()},
                        {"config.json", R"({"model_type": "siglip"})"},
                        {"tokenizer_config.json", Json{{"tokenizer_class", type}}.dump()}},
                       {});
  };
  EXPECT_THAT(message_of<DataError>([&] { siglip("GemmaTokenizerFast"); }), HasSubstr("of SigLIP 2 is not"));
  EXPECT_NO_THROW(siglip("PreTrainedTokenizerFast"));
}

TEST(HubTokenizer, SaysWhatIsDamaged) {
  auto document = byte_level();
  document["model"]["vocab"]["x"] = 5;
  EXPECT_THAT(problem_of(document), HasSubstr("have the same id"));
  document["model"]["vocab"]["x"] = int64_t{1} << 40;
  EXPECT_THAT(problem_of(document), HasSubstr("the id of the token 'x' is no number from 0 to"));
  document = byte_level();
  document["model"]["merges"] = {"Ġ zzz"};
  EXPECT_THAT(problem_of(document), HasSubstr("the merge of 'Ġ' and 'zzz' uses what is no token"));
  document["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}};
  EXPECT_THAT(problem_of(document), HasSubstr("precompiled_charsmap is damaged: it has no trie"));
  document["normalizer"]["precompiled_charsmap"] = "A*==";
  EXPECT_THAT(problem_of(document), HasSubstr("precompiled_charsmap is not Base64"));
  document["normalizer"] = nullptr;
  document["model"] = {
      {"type", "Unigram"}, {"unk_id", 1}, {"vocab", Json::array({Json::array({"a", -1.0})})}};
  EXPECT_THAT(problem_of(document), HasSubstr("the unk_id 1 is no token"));
  document["model"] = 5;
  EXPECT_THAT(problem_of(document), HasSubstr("damaged"));
  EXPECT_THAT(message_of<DataError>([] { make_hub_tokenizer({{"tokenizer.json", "{"}}, {}); }),
              HasSubstr("tokenizer.json: not valid JSON"));
  EXPECT_THAT(message_of<DataError>([] { hub_special_tokens({{"tokenizer_config.json", "[]"}}); }),
              HasSubstr("tokenizer_config.json: not an object"));
}

// Without an unk, a text with unknown characters has no tokens.
TEST(HubTokenizer, RefusesTextsThatItsModelCannotCut) {
  for (const Json& model : {Json{{"type", "Unigram"}, {"vocab", Json::array({Json::array({"a", -1.0})})}},
                            Json{{"type", "WordLevel"}, {"vocab", {{"a", 0}}}}}) {
    auto document = byte_level();
    document["model"] = model;
    document["pre_tokenizer"] = nullptr;
    const auto tokenizer = tokenizer_of(document);
    EXPECT_THAT(tokenizer->encode("a"), ElementsAre(0));
    EXPECT_THAT(message_of<DataError>([&] { tokenizer->encode("é"); }), HasSubstr("is no token"));
  }
}

TEST(HubTokenizer, SaysWhereTokensStand) {
  const auto tokenizer = tokenizer_of(byte_level());
  const std::vector<PlacedToken> expected = {{'a' + 1, 0, 1}, {258, 1, 3}, {0, 3, 8}, {259, 8, 12}};
  EXPECT_EQ(tokenizer->encode_with_places("ahe<end> the"), expected);
  // Both bytes of a character stand where it stands.
  EXPECT_THAT(tokenizer->encode_with_places("é"),
              ElementsAre(::testing::Field(&PlacedToken::end, 1), ::testing::Field(&PlacedToken::end, 1)));
}

TEST(HubTokenizer, AnUnknownTokenStandsForAllUnknownCharacters) {
  const auto places = [](bool is_fused) {
    const Json document = {
        {"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}, {"normalized", false}}}},
        {"decoder", {{"type", "Fuse"}}},
        {"model",
         {{"type", "BPE"},
          {"vocab", {{"<unk>", 0}, {"a", 1}, {"b", 2}}},
          {"merges", Json::array()},
          {"unk_token", "<unk>"},
          {"fuse_unk", is_fused}}}};
    return tokenizer_of(document)->encode_with_places("axyzb");
  };
  EXPECT_EQ(places(true), (std::vector<PlacedToken>{{1, 0, 1}, {0, 1, 4}, {2, 4, 5}}));
  EXPECT_EQ(places(false), (std::vector<PlacedToken>{{1, 0, 1}, {0, 1, 2}, {0, 2, 3}, {0, 3, 4}, {2, 4, 5}}));
}

// A hundred small parts could make a text of any length.
TEST(HubTokenizer, PartsCannotMakeATextMuchLonger) {
  auto document = byte_level();
  const Json doubling = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json(std::vector<Json>(60, doubling))}};
  const auto tokenizer = tokenizer_of(document);
  EXPECT_THAT(message_of<DataError>([&] { tokenizer->encode("a"); }), HasSubstr("64 times longer"));
  document["normalizer"]["normalizers"] = std::vector<Json>(300, doubling);
  EXPECT_THAT(problem_of(document), HasSubstr("more than 256 parts"));
}

TEST(HubTokenizer, ARunKeepsItsFiles) {
  const SpecialTokens special{.pad = 0, .eos = 0, .other_ends = {7, 9}, .start = 3};
  const HubFiles files = {{"tokenizer.json", byte_level().dump()}, {"config.json", "{}"}};
  const auto tokenizer = make_hub_tokenizer(files, special);
  const TempDir run;
  tokenizer->save(run.path());
  EXPECT_EQ(read_file(run / "hub/tokenizer.json"), files.at("tokenizer.json"));
  EXPECT_FALSE(is_there(run / "hub/config.json"));  // no file of a tokenizer
  const auto loaded = load_tokenizer(run.path());
  EXPECT_EQ(loaded->special().other_ends, special.other_ends);
  EXPECT_EQ(loaded->special().start, 3);
  EXPECT_EQ(loaded->special().bos, -1);
  EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(loaded->encode(" the"), tokenizer->encode(" the"));
  EXPECT_FALSE(has_hub_tokenizer(run.path()));
  EXPECT_TRUE(has_hub_tokenizer(run / "hub"));
  EXPECT_EQ(open_tokenizer(run.path())->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(open_tokenizer(run / "hub")->fingerprint(), tokenizer->fingerprint());

  auto other = byte_level();
  other["model"]["merges"].erase(0);
  EXPECT_NE(make_hub_tokenizer({{"tokenizer.json", other.dump()}}, special)->fingerprint(),
            tokenizer->fingerprint());
}

TEST(HubTokenizer, ARunLeadsToNoOtherFile) {
  const TempDir run, elsewhere;
  const auto problem = [&] { return message_of<CheckpointError>([&] { load_tokenizer(run.path()); }); };
  tokenizer_of(byte_level())->save(run.path());
  const auto file = run / "hub/tokenizer.json";
  std::filesystem::copy_file(file, elsewhere / "tokenizer.json");

  auto saved = Json::parse(read_file(run / "tokenizer.json"));
  const auto good = saved.dump();
  saved["files"] = {{"../../x", "00"}};
  run.write("tokenizer.json", saved.dump());
  EXPECT_THAT(problem(), HasSubstr("'../../x' is no file of a tokenizer"));
  run.write("tokenizer.json", good);
  run.write("hub/tokenizer.json", "{}");
  EXPECT_THAT(problem(), HasSubstr("damaged, or does not belong to tokenizer.json"));
  std::filesystem::remove(file);
  std::filesystem::create_symlink(elsewhere / "tokenizer.json", file);
  EXPECT_THAT(problem(), Not(HasSubstr("no error")));
  std::filesystem::remove_all(run / "hub");
  EXPECT_THAT(problem(), HasSubstr("hub: missing"));
  std::filesystem::create_directory_symlink(elsewhere.path(), run / "hub");
  EXPECT_THAT(problem(), Not(HasSubstr("no error")));
}

TEST(HubTokenizer, ANewRunTakesADirectory) {
  const TempDir dir;
  dir.write("tokenizer.json", byte_level().dump());
  dir.write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  TokenizerConfig config;
  config.type = TokenizerKind::hub;
  config.path = {dir.path().string(), {}};
  const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, [](const auto&) {});
  EXPECT_EQ(tokenizer->special().eos, 0);
  EXPECT_THAT(tokenizer->encode(" the"), ElementsAre(259));
}

}  // namespace
}  // namespace zoo
