// Tests scripts/get_data.sh. (Corpora that follow the release of Debian: debian_corpora_test.cpp.)

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"
#include "io/sha256.h"
#include "tests/data/get_data_support.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using testing::DebianPackage;
using testing::GetData;
using ::testing::HasSubstr;
using testing::Result;

TEST_F(GetData, CopiesFromAMirrorOnce) {
  dir_.write("mirror/tinyshakespeare/input.txt", "To be\n");
  Result result = run("tinyshakespeare", mirror());
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(read_file(dir_ / "data/tinyshakespeare/input.txt"), "To be\n");
  EXPECT_THAT(left_in_data(), ::testing::ElementsAre("tinyshakespeare"));
  // An existing file is not fetched again: now no source has it.
  program("curl", "exit 22");
  result = run("tinyshakespeare");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("already"));
  // A damaged file is fetched again.
  dir_.write("data/tinyshakespeare/input.txt", "To bo\n");
  EXPECT_EQ(run("tinyshakespeare", mirror()).code, 0);
  EXPECT_EQ(read_file(dir_ / "data/tinyshakespeare/input.txt"), "To be\n");
}

TEST_F(GetData, AWrongChecksumIsOneLineAndLeavesNothing) {
  dir_.write("mirror/tinyshakespeare/input.txt", "To be, or\n");
  const Result result = run("tinyshakespeare", mirror());
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.lines(), 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("input.txt has sha256 " + sha256("To be, or\n") + " instead of " +
                                       sha256("To be\n")));
  EXPECT_THAT(left_in_data(), ::testing::IsEmpty());
}

TEST_F(GetData, AFailureKeepsWhatWasThere) {
  dir_.write("data/tinyshakespeare/input.txt", "old\n");
  dir_.write("mirror/tinyshakespeare/other.txt", "");
  const Result result = run("tinyshakespeare", mirror());
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.lines(), 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("input.txt is missing"));
  EXPECT_EQ(read_file(dir_ / "data/tinyshakespeare/input.txt"), "old\n");
  EXPECT_THAT(left_in_data(), ::testing::ElementsAre("tinyshakespeare"));
}

TEST_F(GetData, DownloadsWhereTheMirrorHasNothing) {
  program("curl", R"(
while [[ $# -gt 0 ]]; do case $1 in --output) out=$2; shift 2 ;; *) url=$1; shift ;; esac; done
[[ $url == https://*/tinyshakespeare/input.txt ]] && printf 'To be\n' >"$out")");
  fs::create_directories(dir_ / "mirror");
  const Result result = run("tinyshakespeare", mirror());
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(read_file(dir_ / "data/tinyshakespeare/input.txt"), "To be\n");
}

TEST_F(GetData, WithoutANetworkItSaysHowToGoOn) {
  program("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6");
  for (const std::string name :
       {"tinyshakespeare", "wikitext-2", "sst2", "fashion-mnist", "proteins", "structures"}) {
    const Result result = run(name);
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_EQ(result.lines(), 1) << result.output;
    EXPECT_THAT(result.output, HasSubstr("ZOO_DATA_MIRROR"));
  }
  EXPECT_THAT(left_in_data(), ::testing::IsEmpty());
}

TEST_F(GetData, UnknownNamesAndOptionsAreErrors) {
  for (const std::string arguments : {"shakespeare", "--force", "../etc"}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.lines(), 1) << result.output;
  }
  EXPECT_THAT(run("shakespeare").output, HasSubstr("tinyshakespeare"));
  EXPECT_EQ(run("").code, 2);
}

TEST_F(GetData, ListAndHelpSayWhatThereIs) {
  dir_.write("data/tinyshakespeare/input.txt", "To be\n");
  const Result list = run("--list");
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.output, HasSubstr("* tinyshakespeare"));
  EXPECT_THAT(list.output, HasSubstr("  dict-de-en"));
  EXPECT_THAT(run("--list", "ZOO_DATA=''").output, HasSubstr((dir_ / "repository/datasets)").string()));
  const Result help = run("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("ZOO_DATA_MIRROR"));
}

// The recordings as they are published become lists; those of later releases are left out.
TEST_F(GetData, SpokenDigitsBecomeLists) {
  for (const char* name : {"3_ann_4", "3_ann_5", "4_bob_10", "4_bob_44", "4_bob_45", "notes"})
    dir_.write(fmt::format("mirror/fsdd/{}.wav", name), name);
  const std::string head = "audio\ttext\tspeaker\n";
  const std::vector<std::pair<std::string, std::string>> files{
      {"test.tsv", head + "recordings/3_ann_4.wav\tthree\tann\n"},
      {"valid.tsv", head + "recordings/3_ann_5.wav\tthree\tann\n"},
      {"train.tsv", head + "recordings/4_bob_10.wav\tfour\tbob\nrecordings/4_bob_44.wav\tfour\tbob\n"},
      {"recordings.sha256", sha256("3_ann_4") + "  recordings/3_ann_4.wav\n" + sha256("3_ann_5") +
                                "  recordings/3_ann_5.wav\n" + sha256("4_bob_10") +
                                "  recordings/4_bob_10.wav\n" + sha256("4_bob_44") +
                                "  recordings/4_bob_44.wav\n"}};
  std::string sums;
  for (const auto& [name, content] : files) sums += sha256(content) + "  fsdd/" + name + "\n";
  dir_.write("repository/scripts/data/SHA256SUMS", sums);
  Result result = run("fsdd", mirror());
  ASSERT_EQ(result.code, 0) << result.output;
  for (const auto& [name, content] : files) EXPECT_EQ(read_file(dir_ / ("data/fsdd/" + name)), content);
  EXPECT_THAT(run("fsdd").output, HasSubstr("already"));
  dir_.write("data/fsdd/recordings/3_ann_5.wav", "damaged");
  result = run("fsdd", mirror());
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(read_file(dir_ / "data/fsdd/recordings/3_ann_5.wav"), "3_ann_5");
  // The finished corpus may be a mirror, too.
  fs::rename(dir_ / "data/fsdd", dir_ / "finished");
  fs::create_directories(dir_ / "other");
  fs::rename(dir_ / "finished", dir_ / "other/fsdd");
  result = run("fsdd", fmt::format("ZOO_DATA_MIRROR='{}'", (dir_ / "other").string()));
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST_F(GetData, SpokenSentencesNeedEspeak) {
  const std::string text = "Love is a rose.\n%\n";
  for (const char* name : {"train.txt", "valid.txt", "train.tsv", "valid.tsv"})
    dir_.write(fmt::format("mirror/fortunes/{}", name), text);
  std::string sums;
  for (const char* name : {"train.txt", "valid.txt", "train.tsv", "valid.tsv"})
    sums += fmt::format("{}  fortunes/{}\n", sha256(text), name);
  dir_.write("repository/scripts/data/SHA256SUMS", sums);
  program("espeak-ng", R"(
[[ $1 != --version ]] || { echo 'eSpeak NG text-to-speech: 1.2  Data at: /x'; exit; }
while [[ $# -gt 0 ]]; do [[ $1 != -w ]] || printf 'sound' >"$2"; shift; done)");
  const Result result = run("espeak", mirror());
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(read_file(dir_ / "data/espeak/train.tsv"),
              HasSubstr("recordings/train-0001.wav\tlove is a rose\ten-"));
  EXPECT_EQ(read_file(dir_ / "data/espeak/recordings/train-0001.wav"), "sound");
  EXPECT_THAT(read_file(dir_ / "data/espeak/SOURCES"), HasSubstr("1.2"));
}

TEST_F(GetData, ProteinsHaveTheirStructureInThreeStatesAndSplits) {
  // The residues at the ends of a chain that a crystal does not show are not counted, nor a long run within.
  const std::string tail(4, 'C'), kept(6, 'C'), within(20, 'C');
  std::string chains = "chain\tsequence\tdssp8\tfold\n";
  chains += "1ABC.A\tMKVLAA\tCHGIEB\talpha\n";
  chains +=
      "2ABC.A\t" + std::string(45, 'A') + "\t" + tail + kept + "HH" + within + "TE" + kept + "CCCCC\tbeta\n";
  const std::string cb513 = "sequence\tdssp8\nMKV\tST-\n";
  const std::string kept_chain =
      "----" + kept + "HH" + kept + std::string(8, '-') + kept + "TE" + kept + "-----";
  std::string three = kept_chain;
  std::ranges::replace(three, 'T', 'C');
  const auto train =
      "sequence\tdssp8\tdssp3\tfold\n" + std::string(45, 'A') + "\t" + kept_chain + "\t" + three + "\tbeta\n";
  const std::vector<std::pair<std::string, std::string>> made = {
      {"structure.test.tsv", "sequence\tdssp8\tdssp3\nMKV\tST-\tCC-\n"},
      {"structure.train.tsv", train},
      {"structure.strands.tsv", train},
      {"structure.valid.tsv", "sequence\tdssp8\tdssp3\tfold\nMKVLAA\tCHGIEB\tCHHHEE\talpha\n"}};
  std::string sums = sha256(chains) + "  proteins/train.tsv\n" + sha256(cb513) + "  proteins/cb513.tsv\n";
  for (const auto& [name, content] : made) sums += sha256(content) + "  proteins/" + name + "\n";
  dir_.write("repository/scripts/data/SHA256SUMS", sums);
  dir_.write("mirror/proteins/train.tsv", chains);
  dir_.write("mirror/proteins/cb513.tsv", cb513);
  const Result result = run("proteins", mirror());
  EXPECT_EQ(result.code, 0) << result.output;
  for (const auto& [name, content] : made)
    EXPECT_EQ(read_file(dir_ / ("data/proteins/" + name)), content) << name;
  EXPECT_THAT(run("proteins").output, HasSubstr("already"));
}

constexpr std::string_view dictionary_head =
    "# Version :: test\n"
    "lieben {vt} | Ich liebe dich. | Ich liebe dich wie verrückt. :: to love | I love you. /ILU/ <I love u> "
    "| I love you "
    "like crazy.\n"
    "Guten Tag, Herr Dr. Maier! [ugs.] :: Good afternoon, Mr. Maier!\n"
    "Das ist gut.; Das passt. :: That's fine. (all right); That fits.\n"
    "Er kommt {m} (später) am 3. Mai. :: He'll come on 3 May.\n"
    "weiße Rose {f}; helle Rose :: white rose\n"
    "A- und B-Boden :: A and B horizons\n"
    "Er ist hin (ganz und gar. :: He is gone.\n"
    "Das ist purer Zufall. :: That is sheer/pure chance.\n"
    "eins | zwei :: one\n";

TEST_F(DebianPackage, OfAnotherVersionIsTakenWithANote) {
  std::string dictionary(dictionary_head);
  for (int i = 0; i < 1200; ++i) dictionary += fmt::format("Das ist Nummer {0}. :: This is number {0}.\n", i);
  package("trans-de-en", "9.9-1", {{"usr/share/trans/de-en", dictionary}});
  std::string sums;
  for (const char* file : {"train.de", "train.en", "valid.de", "valid.en", "test.de", "test.en",
                           "phrases.train.de", "phrases.train.en"}) {
    sums += std::string(64, '0') + "  dict-de-en/" + file + "\n";
  }
  dir_.write("repository/scripts/data/SHA256SUMS", sums);
  Result result = run("dict-de-en");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("trans-de-en 9.9-1"));
  EXPECT_THAT(result.output, HasSubstr("note:"));
  const std::string de = read_file(dir_ / "data/dict-de-en/train.de"),
                    en = read_file(dir_ / "data/dict-de-en/train.en");
  EXPECT_THAT(de, HasSubstr("Ich liebe dich .\nIch liebe dich wie verrückt .\n"));
  EXPECT_THAT(en, HasSubstr("I love you .\nI love you like crazy .\n"));
  // The rest is in one of the three splits.
  std::string all_de, all_en;
  for (const std::string split : {"train", "valid", "test"}) {
    all_de += read_file(dir_ / ("data/dict-de-en/" + split + ".de"));
    all_en += read_file(dir_ / ("data/dict-de-en/" + split + ".en"));
  }
  for (const char* line :
       {"Guten Tag , Herr Dr. Maier !\n", "Das ist gut .\n", "Das passt .\n", "Er kommt am 3. Mai .\n"}) {
    EXPECT_THAT(all_de, HasSubstr(line));
  }
  for (const char* line :
       {"Good afternoon , Mr. Maier !\n", "That's fine .\n", "That fits .\n", "He'll come on 3 May .\n"}) {
    EXPECT_THAT(all_en, HasSubstr(line));
  }
  EXPECT_EQ(all_de.find("Zufall"), std::string::npos);   // two translations in one
  EXPECT_EQ(all_en.find("is gone"), std::string::npos);  // an annotation that is not closed
  EXPECT_EQ(std::ranges::count(all_de, '\n'), 1200 + 6);
  EXPECT_EQ(read_file(dir_ / "data/dict-de-en/phrases.train.de"), "weiße Rose\n");
  EXPECT_EQ(read_file(dir_ / "data/dict-de-en/phrases.train.en"), "white rose\n");
  for (const std::string split : {"valid", "test"}) {
    const std::string text = read_file(dir_ / ("data/dict-de-en/" + split + ".de"));
    EXPECT_EQ(std::ranges::count(text, '\n'), 500);
    EXPECT_EQ(text.find("liebe"), std::string::npos);
  }
  // The corpus is made again only if it is damaged.
  EXPECT_THAT(run("dict-de-en").output, HasSubstr("already"));
  dir_.write("data/dict-de-en/valid.de", "x\n");
  EXPECT_THAT(run("dict-de-en").output, HasSubstr("note:"));
}

TEST_F(DebianPackage, OfTheKnownVersionMustGiveTheKnownFiles) {
  package("fortunes", "1:1.99.1-7.3", {{"usr/share/games/fortunes/love", "one\n%\ntwo\n%\n"}});
  expect("fortunes/train.txt", "something else");
  const Result result = run("fortunes");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.lines(), 1) << result.output;
  EXPECT_THAT(left_in_data(), ::testing::IsEmpty());
}

TEST_F(DebianPackage, FortunesBecomeDocumentsAndRows) {
  std::string love, art;
  for (int i = 1; i <= 160; ++i) love += fmt::format("Love is\n\t{} roses.\n%\n", i);
  for (int i = 1; i <= 25; ++i) art += fmt::format("A\bArt {}\n%\n", i);
  package("fortunes", "9",
          {{"usr/share/games/fortunes/love", love},
           {"usr/share/games/fortunes/art", art + "Love is\n 1 roses.\n%\n"},
           {"usr/share/games/fortunes/latin", "caf\xE9\n%\n"},
           {"usr/share/games/fortunes/love.dat", "\x01\x02"}});
  std::string sums;
  for (const char* file : {"train.txt", "valid.txt", "train.tsv", "valid.tsv"}) {
    sums += std::string(64, '0') + "  fortunes/" + file + "\n";
  }
  dir_.write("repository/scripts/data/SHA256SUMS", sums);
  const Result result = run("fortunes");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::string train = read_file(dir_ / "data/fortunes/train.txt"),
                    rows = read_file(dir_ / "data/fortunes/train.tsv");
  EXPECT_THAT(train, ::testing::StartsWith("Art 1\n%\nArt 2\n%\n"));  // without overstriking
  EXPECT_THAT(train, HasSubstr("Love is\n\t2 roses.\n%\n"));
  EXPECT_EQ(std::ranges::count(train, '%'), 152 + 25);
  EXPECT_THAT(rows, ::testing::StartsWith("sentence\tlabel\nLove is 2 roses.\tlove\n"));
  EXPECT_EQ(std::ranges::count(rows, '\n'), 1 + 152);  // art has too few rows; one of love is in art before
  EXPECT_EQ(std::ranges::count(read_file(dir_ / "data/fortunes/valid.tsv"), '\n'), 1 + 7);
}

TEST_F(DebianPackage, ThatCannotBeHadIsOneLine) {
  program("apt-get", "echo 'E: Unable to locate package' >&2; exit 100");
  const Result result = run("fortunes");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.lines(), 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Unable to locate package"));
  EXPECT_THAT(left_in_data(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace zoo
