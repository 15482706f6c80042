#include "text/corpus.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/machine.h"
#include "data/tables.h"
#include "io/files.h"
#include "tests/data/support.h"
#include "tests/support/file_opens.h"
#include "text/text_rows.h"
#include "text/token_streams.h"
#include "tokenizers/token_cache.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::ScopedEnvironment;
using testing::TempDir;

class CorpusFiles : public ::testing::Test {
 protected:
  DataConfig config_of(const std::vector<std::string>& train, DocumentSplit documents = DocumentSplit::none) {
    DataConfig config;
    config.train.assign(train.begin(), train.end());
    config.documents = documents;
    return config;
  }
  /// All training documents of a file with this content; it is not shared with the validation split.
  std::vector<std::string> documents(const std::string& content, DocumentSplit split) {
    dir_.write("train.txt", content);
    DataConfig config = config_of({"train.txt"}, split);
    config.valid = {"train.txt"};
    return read_documents(config, Split::train);
  }

  TempDir dir_;
  ScopedEnvironment root_{"ZOO_DATA", dir_.path().string()};
};

TEST_F(CorpusFiles, DocumentsAreWhatTheConfigurationSays) {
  EXPECT_THAT(documents("a\n\nb\n", DocumentSplit::none), ElementsAre("a\n\nb\n"));
  EXPECT_THAT(documents("a\n\n  \nb c \n", DocumentSplit::line), ElementsAre("a", "b c"));
  EXPECT_THAT(documents("\n\na\nb\n\n \t\nc\n\n", DocumentSplit::blank_line), ElementsAre("a\nb", "c"));
  EXPECT_THAT(documents("a\n\nb\n%\n100 %\n% no\n%\n%\nc", DocumentSplit::percent),
              ElementsAre("a\n\nb", "100 %\n% no", "c"));
}

TEST_F(CorpusFiles, OfALargeCorpusAreReadThreeTimes) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += fmt::format("line {}\n", i * i);
  dir_.write("train.txt", text);
  const ScopedEnvironment cache("ZOO_CACHE", (dir_ / "cache").string());
  for (const auto documents : {DocumentSplit::none, DocumentSplit::line}) {
    const auto config = config_of({"train.txt"}, documents);
    TokenizerConfig characters;
    characters.type = TokenizerKind::character;
    testing::FileOpens opens({dir_ / "train.txt"});
    Corpus corpus(config, /*most_kept=*/0);  // as if its texts did not fit into memory
    const auto tokenizer = make_tokenizer(characters, SpecialTokenSet::all, corpus.reader(Split::train));
    TokenStreams streams(corpus);
    const auto train = streams.take(Split::train, *tokenizer), valid = streams.take(Split::valid, *tokenizer);
    const auto hash = corpus.hash_of_data();
    EXPECT_EQ(opens.counts().at("train.txt"), documents == DocumentSplit::none ? 2 : 3);

    EXPECT_EQ(hash, hash_of_data(config));
    const auto expect_tokens = [&](const TokenStore& store, Split split) {
      EXPECT_EQ(store.stored_ids(),
                tokenize(read_documents(config, split), *tokenizer, RowEnding::end_of_sequence).stored_ids());
    };
    expect_tokens(train, Split::train);
    expect_tokens(valid, Split::valid);
    // A small corpus is kept, and has the same tokens in the cache.
    Corpus kept(config);
    testing::FileOpens once({dir_ / "train.txt"});
    for (const auto split : {Split::train, Split::valid}) {
      EXPECT_EQ(kept.texts(split), read_documents(config, split));
      EXPECT_EQ(kept.fingerprint(split), corpus.fingerprint(split));
    }
    EXPECT_EQ(kept.hash_of_data(), hash);
    EXPECT_EQ(once.counts().at("train.txt"), 1 + 2);  // read_documents() reads each time
  }
}

TEST_F(CorpusFiles, OfASplitWithoutDocumentsAreRefusedWhenItIsWanted) {
  dir_.write("train.txt", "one\ntwo\n");
  auto config = config_of({"train.txt"}, DocumentSplit::line);
  config.valid_fraction = 0.1;  // none of two
  Corpus corpus(config);
  TokenizerConfig bytes;
  bytes.type = TokenizerKind::byte;
  const auto tokenizer = make_tokenizer(bytes, SpecialTokenSet::all, nullptr);
  TokenStreams streams(corpus);
  EXPECT_EQ(streams.take(Split::train, *tokenizer).n_rows(), 1);
  EXPECT_EQ(streams.take(Split::valid, *tokenizer).n_rows(), 1);
  dir_.write("train.txt", "one\n");
  Corpus small(config);
  TokenStreams of_small(small);
  EXPECT_THAT(message_of<DataError>([&] { of_small.take(Split::train, *tokenizer); }),
              HasSubstr("no documents for train"));
  EXPECT_EQ(of_small.take(Split::valid, *tokenizer).n_rows(), 1);
}

TEST_F(CorpusFiles, TextsOfATableAreDocuments) {
  dir_.write("train.tsv", "label\tsentence\n0\tone two \n1\t \n1\tthree\n");
  dir_.write("train.txt", "four\nfive\n");
  DataConfig config = config_of({"train.tsv", "train.txt"}, DocumentSplit::line);
  config.valid = {"train.txt"};
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("one two", "three", "four", "five"));
  config.documents = DocumentSplit::none;
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("one two\n\nthree\n", "four\nfive\n"));
  config.text_column = {"text", "label"};
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("0\n1\n1\n", "four\nfive\n"));
  config.text_column = {"text", "phrase"};
  EXPECT_THAT(
      message_of<DataError>([&] { read_documents(config, Split::train); }),
      HasSubstr("train.tsv:1: no column \"text\" or \"phrase\" in the header; there are: label, sentence"));
}

TEST_F(CorpusFiles, ForeignLineEndsAndByteOrderMarksAreTolerated) {
  EXPECT_THAT(documents("\xEF\xBB\xBFone\r\n%\r\ntwo\r\n", DocumentSplit::percent),
              ElementsAre("one", "two"));
  EXPECT_THAT(documents("a\rb\r\n", DocumentSplit::none), ElementsAre("a\rb\n"));
}

TEST_F(CorpusFiles, TheValidationSplitIsTheEndOfTheTextInCodePoints) {
  std::string text;
  for (int i = 0; i < 103; ++i) text += i % 3 == 0 ? "ä" : i % 3 == 1 ? "x" : "€";
  dir_.write("train.txt", text);
  const DataConfig config = config_of({"train.txt"});
  const auto train = read_documents(config, Split::train), valid = read_documents(config, Split::valid);
  ASSERT_EQ(train.size(), 1);
  EXPECT_EQ(decode_utf8(train[0]).size(), 92);  // int(0.9 * 103)
  EXPECT_EQ(train[0] + valid.at(0), text);
}

TEST_F(CorpusFiles, TinyShakespeareIsSplitAsNanoGptDoesIt) {
  const auto file = std::filesystem::absolute(testing::mirror() / "tinyshakespeare/input.txt");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here; set ZOO_DATA_MIRROR";
  const DataConfig config = config_of({file.string()});
  EXPECT_EQ(read_documents(config, Split::train).at(0).size(), 1003854);
  EXPECT_EQ(read_documents(config, Split::valid).at(0).size(), 111540);
}

TEST_F(CorpusFiles, AWholeTextMayBeSplitWithinAnyFile) {
  dir_.write("a.txt", "aaaaaa");
  dir_.write("b.txt", "bbbb");
  DataConfig config = config_of({"a.txt", "b.txt"});
  config.valid_fraction = 0.5;
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("aaaaa"));
  EXPECT_THAT(read_documents(config, Split::valid), ElementsAre("a", "bbbb"));
}

TEST_F(CorpusFiles, DocumentsAreSplitWhole) {
  dir_.write("train.txt", "1\n2\n3\n4\n5\n6\n7\n");
  const DataConfig config = config_of({"train.txt"}, DocumentSplit::line);
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(read_documents(config, Split::valid), ElementsAre("7"));
}

TEST_F(CorpusFiles, InvalidUtf8NamesFileLineAndByte) {
  dir_.write("train.txt", "fine\nb\xE9se\n");
  const auto message = message_of<DataError>([&] { read_documents(config_of({"train.txt"}), Split::train); });
  EXPECT_THAT(message, HasSubstr(dir_.path().string() + "/train.txt:2: not UTF-8 at byte 6"));
}

TEST_F(CorpusFiles, MissingAndEmptyFilesAreErrors) {
  const auto read = [&](const char* file) {
    return message_of<DataError>([&] { read_documents(config_of({file}), Split::train); });
  };
  EXPECT_THAT(read("nothing.txt"), HasSubstr("nothing.txt does not exist"));
  EXPECT_THAT(read("fortunes/train.txt"), HasSubstr("scripts/get_data.sh fortunes"));
  EXPECT_THAT(read("/nothing.txt"), HasSubstr("/nothing.txt does not exist"));
  EXPECT_THAT(read("."), HasSubstr("is not a file"));
  dir_.write("empty.txt", "");
  EXPECT_THAT(read("empty.txt"), HasSubstr("empty.txt: the file is empty"));
  dir_.write("blank.txt", " \n\r\n\t\n");
  EXPECT_THAT(read("blank.txt"), HasSubstr("blank.txt: the file is empty"));
  EXPECT_THAT(message_of<DataError>([&] { read_documents(config_of({"empty.txt"}), Split::test); }),
              HasSubstr("data.test names no files"));
  dir_.write("percent.txt", "%\n%\n");
  EXPECT_THAT(message_of<DataError>(
                  [&] { read_documents(config_of({"percent.txt"}, DocumentSplit::percent), Split::train); }),
              HasSubstr("percent.txt"));
  dir_.write("one.txt", "only one\n");
  EXPECT_THAT(message_of<DataError>(
                  [&] { read_documents(config_of({"one.txt"}, DocumentSplit::line), Split::train); }),
              HasSubstr("too short to be split"));
}

TEST_F(CorpusFiles, ParallelLinesCorrespond) {
  dir_.write("p.de", "eins\r\nzwei\n\nvier\nfünf\n");
  dir_.write("p.en", "one\ntwo\nthree\nfour\n \n");
  DataConfig config = config_of({"p"});
  config.valid = {"p"};
  const ParallelTexts texts = parallel_texts(config).take(Split::train);
  EXPECT_THAT(texts.source, ElementsAre("eins", "zwei", "vier"));
  EXPECT_THAT(texts.target, ElementsAre("one", "two", "four"));

  dir_.write("p.en", "one\ntwo\n");
  const auto message = message_of<DataError>([&] { parallel_texts(config).take(Split::train); });
  EXPECT_THAT(message, HasSubstr("p.de has 5 lines"));
  EXPECT_THAT(message, HasSubstr("p.en has 2"));
  config.target = "fr";
  EXPECT_THAT(message_of<DataError>([&] { parallel_texts(config).take(Split::train); }),
              HasSubstr("p.fr does not exist"));
}

TEST_F(CorpusFiles, PairsMayStandInATable) {
  dir_.write("p.jsonl",
             "{\"translation\": {\"de\": \"eins\\nzwei\", \"en\": \"one\"}}\n{\"translation\": {\"de\": "
             "\"\", \"en\": \"two\"}}\n"
             "{\"translation\": {\"de\": \"drei\", \"en\": \"three\"}}\n");
  DataConfig config = config_of({"p.jsonl"});
  config.valid = {"p.jsonl"};
  const auto texts = parallel_texts(config).take(Split::train);
  EXPECT_THAT(texts.source, ElementsAre("eins zwei", "drei"));
  EXPECT_THAT(texts.target, ElementsAre("one", "three"));
}

TEST_F(CorpusFiles, LinesOfJsonAreATable) {
  dir_.write(
      "rows.jsonl",
      "\xEF\xBB\xBF{\"text\": \"one \\u20ac\\r\\n\", \"label\": 1, \"meta\": {\"a\": {\"b\": \"x\"}}}\r\n\n"
      "{\"label\": true}\n{\"text\": null, \"label\": 0.5}\n");
  DataConfig config = config_of({"rows.jsonl"}, DocumentSplit::line);
  config.valid = {"rows.jsonl"};
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("one €"));
  auto rows = labelled_texts(config).take(Split::train);
  EXPECT_THAT(rows.texts, ElementsAre("one €\n", "", "")) << "a classifier reads texts as they stand";
  EXPECT_THAT(rows.labels, ElementsAre("1", "true", "0.5"));
  config.text_column = {"nothing", "meta.a.b"};
  EXPECT_THAT(read_documents(config, Split::train), ElementsAre("x"));

  const auto problem = [&](const std::string& content) {
    dir_.write("rows.jsonl", content);
    return message_of<DataError>([&] { read_documents(config_of({"rows.jsonl"}), Split::train); });
  };
  EXPECT_THAT(problem("{\"text\": \"a\"}\n{\"text\": [1]}\n"),
              HasSubstr("rows.jsonl:2: \"text\" is a list, not a text"));
  EXPECT_THAT(problem("{\"text\": \"a\"}\n\n{\"text\"\n"), HasSubstr("rows.jsonl:3: "));
  EXPECT_THAT(problem("[1]\n"), HasSubstr("rows.jsonl:1: a line is a JSON object"));
  EXPECT_THAT(problem("{\"a\": 1}\n"),
              HasSubstr("rows.jsonl: no column \"sentence\" or \"text\"; there are: a"));
  EXPECT_THAT(problem("{\"text\": \"a\"}\n{\"text\": \"\xff\"}\n"),
              HasSubstr("rows.jsonl:2: not UTF-8 at byte 24"));
  EXPECT_THAT(problem(" \n"), HasSubstr("rows.jsonl: the file is empty"));
}

// The pieces in which a file is read end within lines, line ends and characters.
TEST_F(CorpusFiles, LinesAreThoseOfTheWholeFile) {
  std::string content, line;
  std::vector<std::string> expected;
  for (size_t i = 0; content.size() < 3'500'000; ++i) {
    line = i % 1000 == 0 ? std::string(300'000, 'x') : std::string(i % 97, 'y') + "é€";
    expected.push_back(line);
    content += line + (i % 3 == 0 ? "\r\n" : "\n");
  }
  EXPECT_TRUE(documents(content, DocumentSplit::line) == expected);
  content.resize(content.size() - 1);
  EXPECT_TRUE(documents(content, DocumentSplit::line) == expected);
}

TEST_F(CorpusFiles, LabelledRowsAreReadByColumnName) {
  dir_.write("rows.tsv", "id\tlabel\tsentence\n1\tgood\tquite \"nice\"\n\n2\tbad\t\n");
  DataConfig config = config_of({"rows.tsv"});
  config.valid = {"rows.tsv"};
  const LabelledTexts rows = labelled_texts(config).take(Split::train);
  EXPECT_THAT(rows.texts, ElementsAre("quite \"nice\"", ""));
  EXPECT_THAT(rows.labels, ElementsAre("good", "bad"));

  const auto read = [&] { return message_of<DataError>([&] { labelled_texts(config).take(Split::train); }); };
  dir_.write("rows.tsv", "sentence\tlabel\na\tb\nonly one\n");
  EXPECT_THAT(read(), HasSubstr("rows.tsv:3: 1 fields"));
  dir_.write("rows.tsv", "sentence\tlabel\na\t \n");
  EXPECT_THAT(read(), HasSubstr("rows.tsv:2: no label"));
  dir_.write("rows.tsv", "sentence\tclass\na\tb\n");
  EXPECT_THAT(read(), HasSubstr("rows.tsv:1: no column \"label\" in the header; there are: sentence, class"));
  dir_.write("rows.tsv", "sentence\tlabel\n");
  EXPECT_THAT(read(), HasSubstr("rows.tsv"));
}

/// Rows of `n` classes, sorted by class.
std::string sorted_rows(int n, int rows_of_a_class) {
  std::string table = "text\tlabel\n";
  for (int label = 0; label < n; ++label)
    for (int i = 0; i < rows_of_a_class; ++i)
      table += fmt::format("text {} of {}\tclass {}\n", i, label, label);
  return table;
}

TEST_F(CorpusFiles, ATableSortedByClassIsSplitWithClassesInProportion) {
  dir_.write("rows.tsv", sorted_rows(4, 500));
  const auto config = config_of({"rows.tsv"});
  const auto train = labelled_texts(config).take(Split::train),
             valid = labelled_texts(config).take(Split::valid);
  EXPECT_EQ(train.texts.size() + valid.texts.size(), 2000U);
  for (const std::string label : {"class 0", "class 1", "class 2", "class 3"}) {
    // 50 are expected, and the deviation is 6.7.
    EXPECT_NEAR(static_cast<double>(std::ranges::count(valid.labels, label)), 50, 27) << label;
  }
  EXPECT_TRUE(std::ranges::is_sorted(valid.labels));
}

TEST_F(CorpusFiles, ARowStaysWhereItIsWhenRowsAreAdded) {
  dir_.write("rows.tsv", sorted_rows(2, 100));
  const auto config = config_of({"rows.tsv"});
  const auto before = labelled_texts(config).take(Split::valid);
  dir_.write("rows.tsv", "text\tlabel\nnew\tclass 0\n" + sorted_rows(3, 120).substr(11));
  const auto after = labelled_texts(config).take(Split::valid);
  EXPECT_GT(after.texts.size(), before.texts.size());
  for (const auto& text : before.texts) EXPECT_THAT(after.texts, ::testing::Contains(text));
}

TEST_F(CorpusFiles, SmallTablesHaveRowsOfEachClassForTraining) {
  for (int rows_of_a_class = 2; rows_of_a_class < 8; ++rows_of_a_class) {
    for (int n = 1; n < 6; ++n) {
      SCOPED_TRACE(fmt::format("{} classes of {}", n, rows_of_a_class));
      dir_.write("rows.tsv", sorted_rows(n, rows_of_a_class));
      const auto config = config_of({"rows.tsv"});
      const auto train = labelled_texts(config).take(Split::train),
                 valid = labelled_texts(config).take(Split::valid);
      EXPECT_EQ(std::set(train.labels.begin(), train.labels.end()).size(), static_cast<size_t>(n));
      EXPECT_GE(valid.texts.size(), 1U);
    }
  }
}

TEST_F(CorpusFiles, CapitalsInASuffixDoNotMatter) {
  const std::string rows = "text\tlabel\none\ta\n", lines = "{\"text\": \"one\", \"label\": \"a\"}\n";
  for (const auto& [name, content] :
       {std::pair("R.TSV", rows), std::pair("r.tab", rows), std::pair("r.Tab", rows),
        std::pair("R.JSONL", lines), std::pair("r.ndjson", lines), std::pair("r.NDJSON", lines)}) {
    SCOPED_TRACE(name);
    dir_.write(name, content);
    DataConfig config = config_of({name});
    config.valid = {ConfigPath(name)};
    EXPECT_TRUE(is_table(name));
    EXPECT_THAT(labelled_texts(config).take(Split::train).texts, ElementsAre("one"));
  }
}

TEST_F(CorpusFiles, CsvHasQuotationMarks) {
  const auto rows = [&](const std::string& content) {
    std::vector<std::string> found;
    read_table(dir_.write("r.csv", content), {{"text"}, {"label"}}, [&](const TableRow& row) {
      found.push_back(fmt::format("{} {} {}", row.number, row.fields[0], row.fields[1]));
    });
    return found;
  };
  EXPECT_THAT(
      rows("\xEF\xBB\xBFlabel,text\r\nup,\"a, \"\"b\"\"\"\r\n\r\ndown,\"two\nlines\"\nup,plain \"x\" \n,\n"),
      ElementsAre("2 a, \"b\" up", "4 two\nlines down", "6 plain \"x\" up", "7  "));
  EXPECT_THAT(rows("\"label\";\"text\"\nup;\"1,5; 2\"\n"), ElementsAre("2 1,5; 2 up")) << "Excel in German";
  EXPECT_THAT(open_table(dir_.write("r.csv", "\"a,b\";c\n"))->columns(), ElementsAre("a,b", "c"));
  const auto problem = [&](const std::string& content) {
    return message_of<DataError>([&] { rows(content); });
  };
  EXPECT_THAT(problem("label,text\nup,a,b\n"), HasSubstr("r.csv:2: 3 fields, but the header has 2"));
  EXPECT_THAT(problem("label,text\nup,\"a\" b\n"),
              HasSubstr("r.csv:2: after a field in quotation marks stands  b"));
  EXPECT_THAT(problem("label,text\nup,\"a\nb\n"), HasSubstr("r.csv:2: a field begins with a quotation mark"));
  EXPECT_THAT(problem("label,words\nup,a\n"), HasSubstr("r.csv:1: no column \"text\" in the header"));
  EXPECT_THAT(problem(""), HasSubstr("r.csv: the file is empty"));
}

// A line of tabs has as many fields as bytes.
TEST_F(CorpusFiles, ALineOfTabsTakesNoMoreMemoryThanItsBytes) {
  const std::string tabs(20 << 20, '\t');
  dir_.write("row.tsv", "text\tlabel\na" + tabs + "\n");
  dir_.write("header.tsv", tabs + "\n");
  const int64_t before = peak_resident_bytes();
  EXPECT_THAT(
      message_of<DataError>([&] { read_table(dir_ / "row.tsv", {{"text"}}, [](const TableRow&) {}); }),
      HasSubstr("row.tsv:2: 20971521 fields, but the header has 2"));
  EXPECT_THAT(message_of<DataError>([&] { open_table(dir_ / "header.tsv"); }),
              HasSubstr("header.tsv:1: 20971521 columns: a table has at most 16384"));
  EXPECT_LT(peak_resident_bytes() - before, int64_t{150} << 20);
}

TEST_F(CorpusFiles, TextsForAModelAreLinesOrAColumn) {
  DataConfig config;
  const auto read = [&](const std::string& name) { return read_texts(dir_ / name, config); };
  dir_.write("lines.txt", "\xEF\xBB\xBFone \r\n\n two\t\nthree");
  EXPECT_THAT(read("lines.txt"), ElementsAre("one ", "", " two\t", "three"));
  EXPECT_THAT(lines_of_text("a\nb\n", "here"), ElementsAre("a", "b"));
  dir_.write("rows.tsv", "id\tsentence\n1\tone \n\n2\t\n3\tthree\n");
  EXPECT_THAT(read("rows.tsv"), ElementsAre("one ", "", "three"));

  dir_.write("rows.tsv", "id\tText\n1\tone\n");
  EXPECT_THAT(read("rows.tsv"), ElementsAre("one"));
  dir_.write("rows.csv", "id,Review\n1,\"one, two\"\n");
  EXPECT_THAT(read("rows.csv"), ElementsAre("one, two"));

  dir_.write("rows.tsv", "id\tsentence\n");
  EXPECT_THAT(message_of<DataError>([&] { read("rows.tsv"); }), HasSubstr("rows.tsv: the table has no rows"));
  dir_.write("rows.tsv", "id\tbody\n1\tone\n");
  EXPECT_THAT(message_of<DataError>([&] { read("rows.tsv"); }),
              HasSubstr("rows.tsv:1: no column \"sentence\" or \"text\""));
  EXPECT_THAT(message_of<DataError>([&] { read("nowhere.txt"); }), HasSubstr("nowhere.txt"));
  EXPECT_EQ(message_of<DataError>([] { lines_of_text("a\nb\xFF", "here"); }),
            "here:2: not UTF-8 at byte 3: \\xff");
  EXPECT_EQ(message_of<DataError>([] { lines_of_text("\n\n", "here"); }), "here: the file is empty");
  EXPECT_THAT(lines_of_text(" \n", "here"), ElementsAre(" "));
}

class Cache : public ::testing::Test {
 protected:
  Cache() {
    TokenizerConfig config;
    config.type = TokenizerKind::character;
    tokenizer_ = make_tokenizer(config, SpecialTokenSet::all, testing::reader_of(texts_));
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> result;
    if (!std::filesystem::exists(dir_ / "cache")) return result;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "cache"))
      result.push_back(entry.path());
    return result;
  }
  void expect_right(const TokenStore& store) const {
    ASSERT_EQ(store.n_rows(), 3);
    EXPECT_EQ(store.row(0), tokenizer_->encode(texts_[0]));
    EXPECT_EQ(store.row_length(1), 0);
    EXPECT_EQ(store.row(2), tokenizer_->encode(texts_[2]));
    EXPECT_EQ(store.n_tokens(), store.row_length(0) + store.row_length(2));
  }

  std::vector<std::string> texts_ = {"first text", "", "second"};
  std::unique_ptr<Tokenizer> tokenizer_;
  TempDir dir_;
  ScopedEnvironment root_{"ZOO_CACHE", (dir_ / "cache").string()};
};

TEST_F(Cache, RowsMayEndWithEos) {
  const TokenStore stream = tokenize(texts_, *tokenizer_, RowEnding::end_of_sequence);
  EXPECT_EQ(stream.row(1), (TokenIds{tokenizer_->special().eos}));
  EXPECT_EQ(stream.row(2).back(), tokenizer_->special().eos);
  EXPECT_EQ(stream.n_tokens(), 10 + 6 + 3);
  EXPECT_EQ(stream.slice(stream.row_begin(2), stream.n_tokens()), stream.row(2));
  expect_right(tokenize(texts_, *tokenizer_, RowEnding::bare));
  EXPECT_EQ(files().size(), 2);  // the two do not share a file
  EXPECT_THROW(stream.row(3), std::out_of_range);
  EXPECT_THROW(stream.slice(0, 20), std::out_of_range);
  EXPECT_THROW(stream.slice(-1, 2), std::out_of_range);
}

TEST_F(Cache, IsUsedAgain) {
  expect_right(tokenize(texts_, *tokenizer_, RowEnding::bare));
  ASSERT_EQ(files().size(), 1);
  const auto written = std::filesystem::last_write_time(files()[0]);
  // 64 bit ids would be four times as large.
  EXPECT_LT(std::filesystem::file_size(files()[0]), 200);
  std::filesystem::last_write_time(files()[0], written - std::chrono::hours(1));
  expect_right(tokenize(texts_, *tokenizer_, RowEnding::bare));
  EXPECT_EQ(std::filesystem::last_write_time(files()[0]), written - std::chrono::hours(1));
  // Other texts, and the same text cut elsewhere, have other files.
  tokenize({"first text", "s", "econd"}, *tokenizer_, RowEnding::bare);
  tokenize({"first text", "second"}, *tokenizer_, RowEnding::bare);
  EXPECT_EQ(files().size(), 3);
}

TEST_F(Cache, AnyDamageIsNoticedAndRepaired) {
  tokenize(texts_, *tokenizer_, RowEnding::bare);
  const auto file = files().at(0);
  const std::string good = read_file(file);
  std::vector<std::string> damaged = {"", "x", good.substr(0, good.size() - 1), good + "x",
                                      std::string(good.size(), '\0')};
  for (size_t i = 0; i < good.size(); ++i) {
    damaged.push_back(good);
    damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ 0x41);
  }
  for (const std::string& content : damaged) {
    std::ofstream(file, std::ios::binary) << content;
    expect_right(tokenize(texts_, *tokenizer_, RowEnding::bare));
    ASSERT_EQ(read_file(file), good);
  }
}

/// A tokenizer that counts the texts it encodes.
class CountingTokenizer final : public Tokenizer {
 public:
  explicit CountingTokenizer(const Tokenizer& counted) : counted_(counted) {}
  TokenIds encode(std::string_view text) const override {
    ++n_encoded_;
    return counted_.encode(text);
  }
  std::string decode(std::span<const int64_t> ids) const override { return counted_.decode(ids); }
  std::string label(int64_t id) const override { return counted_.label(id); }
  int64_t vocab_size() const override { return counted_.vocab_size(); }
  bool keeps_text() const override { return counted_.keeps_text(); }
  const SpecialTokens& special() const override { return counted_.special(); }
  void save(const std::filesystem::path& dir) const override { counted_.save(dir); }
  std::string fingerprint() const override { return counted_.fingerprint(); }
  int64_t n_encoded() const { return n_encoded_; }

 private:
  const Tokenizer& counted_;
  mutable std::atomic<int64_t> n_encoded_ = 0;
};

TEST_F(Cache, AnEncodingThatWasStoppedGoesOn) {
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.emplace_back(static_cast<size_t>(i % 7), "first"[i % 5]);
  texts.emplace_back();
  texts.emplace_back();
  const TokenizeOptions small{.part_bytes = 10};
  struct Stopped {};
  for (const int stop : {0, 1, 17, 50, 51}) {
    std::filesystem::remove_all(dir_ / "cache");
    bool is_encoding = false;  // the first time, the texts are read for the key
    const CountingTokenizer first(*tokenizer_), second(*tokenizer_);
    const auto stopping = [&](const std::function<void(std::string_view)>& sink) {
      for (int i = 0; i < std::ssize(texts); ++i) {
        if (is_encoding && i == stop) throw Stopped();
        sink(texts[static_cast<size_t>(i)]);
      }
      is_encoding = true;
    };
    EXPECT_THROW(tokenize(stopping, first, RowEnding::end_of_sequence, small), Stopped);
    const auto store = tokenize(texts, second, RowEnding::end_of_sequence, small);
    ASSERT_EQ(store.n_rows(), std::ssize(texts));
    for (int64_t i = 0; i < store.n_rows(); ++i) {
      auto expected = tokenizer_->encode(texts[static_cast<size_t>(i)]);
      expected.push_back(tokenizer_->special().eos);
      EXPECT_EQ(store.row(i), expected);
    }
    EXPECT_EQ(files().size(), 1);
    // All but the last part is kept.
    EXPECT_LT(second.n_encoded(), std::max<int64_t>(std::ssize(texts) - stop + 8, 10));
  }
}

TEST_F(Cache, IsDoneWithoutWhereNothingCanBeWritten) {
  dir_.write("cache", "a file where the folder should be");
  expect_right(tokenize(texts_, *tokenizer_, RowEnding::bare));
  EXPECT_EQ(read_file(dir_ / "cache"), "a file where the folder should be");
}

TEST_F(Cache, LargeVocabulariesGetWiderIds) {
  const TokenStore store = TokenStore::from_rows({{0, 65535, 65536}, {}, {70000}});
  EXPECT_EQ(store.row(0), (TokenIds{0, 65535, 65536}));
  EXPECT_EQ(store.row(2), (TokenIds{70000}));
}

TEST(CacheRoot, FollowsTheEnvironment) {
  const ScopedEnvironment home("HOME", "/home/me"), xdg("XDG_CACHE_HOME", ""), own("ZOO_CACHE", "");
  EXPECT_EQ(cache_root(), "/home/me/.cache/transformer-zoo");
  {
    const ScopedEnvironment set("XDG_CACHE_HOME", "/x");
    EXPECT_EQ(cache_root(), "/x/transformer-zoo");
  }
  const ScopedEnvironment set("ZOO_CACHE", "/z");
  EXPECT_EQ(cache_root(), "/z");
}

}  // namespace
}  // namespace zoo
