#include "io/config/owned_keys.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;

struct Kind : TypeInfo {};

Registry<Kind>& kinds() {
  static Registry<Kind> types("kind", {{{.name = "reader", .doc = "."}}, {{.name = "writer", .doc = "."}}});
  return types;
}

struct Pens {
  int64_t length = 3;
};
void describe(ConfigVisitor& v, Pens& c) { v.field("length", c.length, "."); }

struct Desk {
  Selection kind = Selection("reader");
  int64_t width = 1;
  std::optional<int64_t> lamps = {};
  Pens pens = {};
};
void describe(ConfigVisitor& v, Desk& c) {
  v.selection("kind", c.kind, kinds(), ".");
  v.field("width", c.width, ".");
  v.only_for({"reader"}, [&] { v.field("lamps", c.lamps, "."); });
  v.only_for({"writer"}, [&] { v.field("pens", c.pens, "."); });
}

std::string problem(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto file = ConfigFile::parse(text, "desk.yaml", overrides);
  Desk desk;
  file.read(desk);
  try {
    check_owned_keys(file, desk, [&](const std::string& key) { return key != "lamps" || desk.lamps != 7; });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OwnedKeys, AreRefusedInFilesOfOthers) {
  EXPECT_EQ(problem("{kind: writer, width: 2, pens: {length: 4}}"), "");
  EXPECT_EQ(problem("{kind: reader, lamps: 2}"), "");
  EXPECT_EQ(problem("kind: reader\npens: {length: 4}"),
            "desk.yaml:2:16: pens.length is for writer: leave it out");
  EXPECT_EQ(problem("{lamps: 2, kind: writer}"), "desk.yaml:1:9: lamps is for reader: leave it out");
  EXPECT_EQ(problem("{kind: writer, lamps: null}"), "") << "null is no value";
  EXPECT_THAT(problem("kind: writer", {"lamps=2"}), HasSubstr("lamps is for reader"));
  EXPECT_EQ(problem("{lamps: 2, kind: writer}", {"kind=reader"}), "");
  EXPECT_EQ(problem("{kind: writer, lamps: 7}"), "") << "what changes nothing";
}

TEST(OwnedKeys, OfOthersAreNotWritten) {
  EXPECT_EQ(dump_config(Desk{.lamps = 2}), "kind: reader\nwidth: 1\nlamps: 2\n");
  EXPECT_EQ(dump_config(Desk{.kind = Selection("writer")}), "kind: writer\nwidth: 1\npens:\n  length: 3\n");
  Desk read;
  ConfigFile::parse("{kind: reader, lamps: 2, pens: {length: 9}}", "old.yaml").read(read);
  EXPECT_EQ(read.pens.length, 9) << "configurations of runs may have them";
}

TEST(OwnedKeys, ATypeOfAProgramMayUseAll) {
  if (!kinds().find("drawer")) kinds().add({{.name = "drawer", .doc = "."}});
  EXPECT_EQ(problem("{kind: drawer, lamps: 1, pens: {length: 4}}"), "");
  EXPECT_THAT(dump_config(Desk{.kind = Selection("drawer")}), HasSubstr("pens:"));
}

}  // namespace
}  // namespace zoo
