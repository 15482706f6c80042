// Tests the corpora of scripts/get_data.sh that follow the release of Debian: descriptions of packages and
// messages of programs.

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"
#include "io/sha256.h"
#include "tests/data/get_data_support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto splits = std::to_array<const char*>({"train", "valid", "test"});

/// A different word for each number, without digits: "ka", "ba", "kaba", ….
std::string word(int64_t n) {
  std::string text;
  for (++n; n > 0; n /= 16) text += fmt::format("{}{}", "bdfghjklmnprstvz"[n % 16], "aeiou"[n % 5]);
  return text;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::string entry(const std::string& name, const std::string& source, const std::string& section,
                  const std::string& description) {
  return fmt::format("Package: {}\nVersion: 1\n{}Section: {}\nDescription: {}\n more of it\n\n", name,
                     source.empty() ? "" : fmt::format("Source: {}\n", source), section, description);
}

/// apt knows 5,100 sources of two packages each, and some packages that a test names.
class ReleaseCorpora : public DebianPackage {
 protected:
  void apt_knows(const std::string& more) {
    std::string dump = more;
    for (int64_t i = 0; i < 5100; ++i) {
      const auto source = fmt::format("s{}", i), text = fmt::format("tool for {}", word(i));
      dump += entry(source, "", "utils", text);
      dump += entry("lib" + source, fmt::format("{} (1.0-{})", source, i), "contrib/libs",
                    text + (i % 2 == 0 ? " - library files" : " (library)"));
    }
    dir_.write("available", dump);
    program("apt-cache", fmt::format("[[ $* == dumpavail ]] && cat '{}/available'", dir_.path().string()));
  }
  std::string made(const std::string& file) const { return read_file(dir_ / "data" / file); }
  std::vector<std::string> made_lines(const std::string& file) const {
    return lines_of(dir_ / "data" / file);
  }
};

TEST_F(ReleaseCorpora, DescriptionsOfOneSourceStayTogether) {
  apt_knows("");
  const auto result = run("debian-packages");
  ASSERT_EQ(result.code, 0) << result.output;
  std::map<std::string, std::string> split_of;
  size_t n = 0;
  for (const std::string split : splits) {
    const auto names = made_lines("debian-packages/" + split + ".name");
    EXPECT_GT(names.size(), 50u) << split;
    n += names.size();
    for (auto name : names) {
      if (name.starts_with("lib")) name.erase(0, 3);
      EXPECT_EQ(split_of.emplace(name, split).first->second, split) << name << ": its siblings are elsewhere";
    }
  }
  EXPECT_EQ(n, 2 * 5100u);
}

TEST_F(ReleaseCorpora, EachKindOfFileHasTheSamePackages) {
  apt_knows("");
  ASSERT_EQ(run("debian-packages").code, 0);
  for (const std::string split : splits) {
    const auto base = "debian-packages/" + split;
    const auto texts = made_lines(base + ".txt"), rows = made_lines(base + ".tsv"),
               names = made_lines(base + ".name");
    EXPECT_EQ(made_lines(base + ".description"), texts);
    ASSERT_EQ(names.size(), texts.size());
    ASSERT_EQ(rows.size(), texts.size() + 1);
    EXPECT_EQ(rows.front(), "sentence\tlabel");
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool library = names[i].starts_with("lib");
      EXPECT_EQ(rows[i + 1], texts[i] + (library ? "\tlibs" : "\tutils"));
      EXPECT_EQ(texts[i].find("library") != std::string::npos, library);
    }
  }
}

TEST_F(ReleaseCorpora, NothingIsTwiceOrEmptyOrNearlyInTwoSplits) {
  std::string more = entry("a", "", "utils", "Same words here") + entry("b", "", "web", "same  WORDS here") +
                     entry("old", "", "oldlibs", "transitional package for new") +
                     entry("one", "", "utils", "Word");
  // Two thousand sources that describe the same, apart from numbers and endings. Only one split may have
  // them.
  for (int i = 0; i < 2000; ++i)
    more += entry(fmt::format("twin{}", i), "", "libs", fmt::format("Twin library {} (part {})", i, i));
  apt_knows(more);
  ASSERT_EQ(run("debian-packages").code, 0);
  std::string all;
  int64_t splits_with_twins = 0;
  for (const std::string split : splits) {
    const auto text = made("debian-packages/" + split + ".txt");
    splits_with_twins += text.find("Twin") != std::string::npos ? 1 : 0;
    all += text;
  }
  EXPECT_EQ(splits_with_twins, 1);
  EXPECT_THAT(all, HasSubstr("Same words here\n"));
  EXPECT_THAT(all, Not(HasSubstr("WORDS")));
  EXPECT_THAT(all, Not(HasSubstr("transitional")));
  EXPECT_THAT(all, Not(HasSubstr("\nWord\n")));
}

TEST_F(ReleaseCorpora, ChecksumsAreKeptWithTheCorpus) {
  apt_knows("");
  ASSERT_EQ(run("debian-packages").code, 0);
  const auto sums = made("debian-packages/SHA256SUMS");
  EXPECT_THAT(sums, HasSubstr(sha256(made("debian-packages/train.txt")) + "  debian-packages/train.txt\n"));
  EXPECT_THAT(made("debian-packages/SOURCES"), HasSubstr(sha256(read_file(dir_ / "available"))));
  EXPECT_THAT(run("debian-packages").output, HasSubstr("already"));
  dir_.write("data/debian-packages/valid.txt", "x\n");
  EXPECT_THAT(run("debian-packages").output, Not(HasSubstr("already")));
  EXPECT_EQ(made("debian-packages/SHA256SUMS"), sums) << "the same lists make the same files";
  // A finished corpus of another machine keeps its own checksums.
  fs::create_directories(dir_ / "mirror");
  fs::rename(dir_ / "data/debian-packages", dir_ / "mirror/debian-packages");
  program("apt-cache", "exit 100");
  EXPECT_EQ(run("debian-packages", mirror()).code, 0);
  EXPECT_EQ(made("debian-packages/SHA256SUMS"), sums);
}

TEST_F(ReleaseCorpora, WithoutListsItSaysToUpdateThem) {
  program("apt-cache", "printf 'Package: installed\\nSection: utils\\nDescription: an installed one\\n\\n'");
  program("apt-get", "exit 100");
  for (const std::string name : {"debian-packages", "messages-de-en"}) {
    dir_.write("repository/scripts/data/SHA256SUMS", "");  // the dictionary has no files: it is complete
    fs::create_directories(dir_ / "data/dict-de-en");
    const auto result = run(name);
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_THAT(result.output, HasSubstr("run apt-get update as root"));
    EXPECT_EQ(std::ranges::count(result.output, '\n'), name == "messages-de-en" ? 2 : 1) << result.output;
  }
  EXPECT_THAT(left_in_data(), ElementsAre("dict-de-en"));
}

TEST_F(ReleaseCorpora, RootGetsTheListsFirst) {
  apt_knows("");
  const auto base = dir_.path().string();
  program("apt-cache", fmt::format("if [[ -e '{0}/updated' ]]; then cat '{0}/available'; fi", base));
  program("apt-get", fmt::format("[[ $1 == update ]] && touch '{}/updated'", base));
  program("id", "echo 0");
  EXPECT_EQ(run("debian-packages").code, 0);
}

using Messages = std::vector<std::pair<std::string, std::string>>;

/// A catalogue as GNU gettext's manual describes it. `swapped`: as a machine with the other byte order writes
/// it.
std::string catalogue(Messages messages, bool swapped = false) {
  messages.insert(messages.begin(), {"", "Content-Type: text/plain; charset=UTF-8\n"});
  const auto number = [&](size_t value) {
    std::string bytes(4, '\0');
    for (size_t i = 0; i < 4; ++i) bytes[swapped ? 3 - i : i] = static_cast<char>(value >> 8 * i & 0xFF);
    return bytes;
  };
  const size_t n = messages.size(), texts_begin = 28 + 16 * n;
  std::string originals, translations, texts;
  const auto add = [&](std::string& table, const std::string& text) {
    table += number(text.size()) + number(texts_begin + texts.size());
    texts += text + '\0';
  };
  for (const auto& message : messages) add(originals, message.first);
  for (const auto& message : messages) add(translations, message.second);
  return number(0x950412DE) + number(0) + number(n) + number(28) + number(28 + 8 * n) + number(0) +
         number(0) + originals + translations + texts;
}

class MessageCatalogues : public ReleaseCorpora {
 protected:
  void SetUp() override {
    DebianPackage::SetUp();
    dir_.write("data/dict-de-en/train.de", "Guten Morgen .\n");
    dir_.write("data/dict-de-en/train.en", "Good morning .\n");
    for (const char* part : {"phrases.train", "valid", "test"}) {
      dir_.write(fmt::format("data/dict-de-en/{}.de", part),
                 part == std::string("test") ? "Bist du da ?\n" : "");
      dir_.write(fmt::format("data/dict-de-en/{}.en", part),
                 part == std::string("test") ? "Are you there ?\n" : "");
    }
    std::string sums;
    for (const auto& file : fs::directory_iterator(dir_ / "data/dict-de-en")) {
      sums += sha256(read_file(file.path())) + "  dict-de-en/" + file.path().filename().string() + "\n";
    }
    dir_.write("repository/scripts/data/SHA256SUMS", sums);
    apt_knows(entry("vlc-l10n", "vlc", "video", "translations for VLC"));
  }

  /// Lets apt-get download the package vlc-l10n with these messages and `n` others.
  void messages(Messages some, bool swapped = false, int64_t n = 7000) {
    for (int64_t i = 0; i < n; ++i)
      some.emplace_back(fmt::format("open {} now", word(i)), fmt::format("jetzt {} öffnen", word(i)));
    package("vlc-l10n", "3.0-1",
            {{"usr/share/locale/de/LC_MESSAGES/vlc.mo", catalogue(some, swapped)},
             {"usr/share/locale/fr/LC_MESSAGES/vlc.mo", "not read"}});
  }

  /// German to English, of all splits.
  std::map<std::string, std::string> all_pairs() const {
    std::map<std::string, std::string> pairs;
    for (const std::string split : splits) {
      const auto de = made_lines("messages-de-en/" + split + ".de"),
                 en = made_lines("messages-de-en/" + split + ".en");
      EXPECT_EQ(de.size(), en.size());
      for (size_t i = 0; i < de.size(); ++i) EXPECT_TRUE(pairs.emplace(de[i], en[i]).second) << de[i];
    }
    return pairs;
  }
};

TEST_F(MessageCatalogues, BecomePairsOfPlainText) {
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped ? "other byte order" : "usual byte order");
    fs::remove_all(dir_ / "data/messages-de-en");
    messages({{"menu\4&Save as...", "&Speichern unter …"},
              {"_Find again:", "_Noch einmal suchen:"},
              {"~New document", "~Neues Dokument"},
              {"Black & white", "Schwarz & weiß"},
              {"Save the file, please.", "Bitte die Datei sichern."},
              {"Save %s now", "Jetzt %s sichern"},
              {"Use <b>bold</b> text", "Nimm <b>fetten</b> Text"},
              {"See /etc/passwd for it", "Siehe /etc/passwd dazu"},
              {"two\nlines", "zwei\nZeilen"},
              {std::string("one file\0more files", 18), std::string("eine Datei\0mehr Dateien", 23)},
              {"two words", ""},
              {"Same words", "Same words"},
              {"File", "Datei"}},
             swapped);
    const auto result = run("messages-de-en");
    ASSERT_EQ(result.code, 0) << result.output;
    const auto pairs = all_pairs();
    EXPECT_EQ(pairs.at("Speichern unter"), "Save as");
    EXPECT_EQ(pairs.at("Noch einmal suchen"), "Find again");
    EXPECT_EQ(pairs.at("Neues Dokument"), "New document");
    EXPECT_EQ(pairs.at("Bitte die Datei sichern ."), "Save the file , please .");
    EXPECT_EQ(pairs.size(), 7000u + 4u) << "the others are no plain text";
    EXPECT_EQ(made("messages-de-en/words.train.de"), "Datei\n");
    EXPECT_EQ(made("messages-de-en/SOURCES"), "vlc-l10n 3.0-1\n");
  }
}

TEST_F(MessageCatalogues, NoMessageIsInTwoSplits) {
  // Many German messages for one English one, and the same ones with other punctuation and capitals.
  Messages some;
  for (int64_t i = 0; i < 600; ++i) {
    some.emplace_back(fmt::format("close {} now", word(i / 3)),
                      fmt::format("{} {} zu", word(i), word(i + 1)));
    some.emplace_back(fmt::format("Close {}, now", word(i / 3)),
                      fmt::format("{} {} ZU!", word(i), word(i + 1)));
  }
  messages(some);
  ASSERT_EQ(run("messages-de-en").code, 0);
  for (const std::string language : {"de", "en"}) {
    std::map<std::string, std::string> split_of;
    for (const std::string split : splits) {
      for (auto line : made_lines(fmt::format("messages-de-en/{}.{}", split, language))) {
        std::erase_if(line, [](char c) { return c == ',' || c == '!' || c == ' '; });
        std::ranges::transform(line, line.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
        EXPECT_EQ(split_of.emplace(line, split).first->second, split) << line;
      }
    }
  }
  EXPECT_EQ(made_lines("messages-de-en/valid.de").size(), 500u);
  EXPECT_EQ(made_lines("messages-de-en/test.de").size(), 1500u);
}

TEST_F(MessageCatalogues, ShareNothingWithTheOtherSplitsOfTheDictionary) {
  messages(
      {{"Are you there?", "Sind Sie da?"}, {"You are there!", "Bist du da!"}, {"Good morning", "Guten Tag"}});
  ASSERT_EQ(run("messages-de-en").code, 0);
  const auto pairs = all_pairs();
  EXPECT_FALSE(pairs.contains("Sind Sie da ?")) << "its English is in the dictionary's test split";
  EXPECT_FALSE(pairs.contains("Bist du da !")) << "its German is in the dictionary's test split";
  EXPECT_THAT(made("messages-de-en/train.de"), HasSubstr("Guten Tag\n"))
      << "the dictionary trains on its English";
}

TEST_F(MessageCatalogues, TakeTheMostFrequentTranslation) {
  messages({{"a\4Look at it", "Sieh es an"},
            {"b\4Watch it now", "Sieh es an"},
            {"c\4Watch it now", "sieh es an"}});
  ASSERT_EQ(run("messages-de-en").code, 0);
  EXPECT_EQ(all_pairs().at("Sieh es an"), "Watch it now");
}

TEST_F(MessageCatalogues, ThatAreDamagedOrFewAreOneLine) {
  messages({}, false, /*n=*/20);
  auto result = run("messages-de-en");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.output, HasSubstr("only 20 German messages"));
  const auto whole = catalogue({{"two words", "zwei Wörter"}});
  for (const auto& damaged :
       {std::string("no catalogue at all"), whole.substr(0, 40), whole.substr(0, 70), std::string()}) {
    package("vlc-l10n", "3.0-1", {{"usr/share/locale/de/LC_MESSAGES/vlc.mo", damaged}});
    result = run("messages-de-en");
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.output, HasSubstr("vlc.mo is not a message catalogue"));
    EXPECT_THAT(result.output, Not(HasSubstr("Traceback")));
  }
  EXPECT_THAT(left_in_data(), ElementsAre("dict-de-en"));
}

}  // namespace
}  // namespace zoo::testing
