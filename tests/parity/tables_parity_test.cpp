// Parquet files that pyarrow wrote.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/machine.h"
#include "data/tables.h"
#include "io/files.h"
#include "tests/parity/reference.h"
#include "tests/support/errors.h"

namespace zoo::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class TablesParity : public ReferenceTest {
 protected:
  TablesParity() : ReferenceTest("reference_tables.py") {}
  void SetUp() override {
#ifndef ZOO_PARQUET
    GTEST_SKIP() << "this build reads no Parquet, because Arrow was not found";
#endif
    ReferenceTest::SetUp();
  }
  std::filesystem::path path(const std::string& name) const { return file("x").parent_path() / name; }
  std::vector<std::string> column(const std::string& file, const std::string& name) const {
    std::vector<std::string> fields;
    read_table(path(file), {{name}}, [&](const TableRow& row) {
      fields.push_back(row.fields[0]);
      EXPECT_EQ(row.number, std::ssize(fields));
    });
    return fields;
  }
};

TEST_F(TablesParity, TextsOfEveryTypeAndCompression) {
  const auto expected = nlohmann::json::parse(read_file(path("expected.json")));
  for (const std::string compression : {"none", "snappy", "gzip", "zstd"}) {
    SCOPED_TRACE(compression);
    const auto file = compression + ".parquet";
    for (const std::string name : {"text", "large", "view"})
      EXPECT_TRUE(column(file, name) == expected["text"]) << name;
    for (const std::string name : {"label", "number", "truth"})
      EXPECT_TRUE(column(file, name) == expected[name]) << name;
    EXPECT_TRUE(column(file, "translation.de") == expected["de"]);
  }
  EXPECT_EQ(open_table(path("none.parquet"))->columns().at(3), "label");
}

TEST_F(TablesParity, ErrorsOfParquet) {
  const auto problem = [&](const std::string& file, const std::string& name) {
    try {
      column(file, name);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(problem("none.parquet", "list"), HasSubstr("\"list\" is list<element: int64>, not a text"));
  EXPECT_THAT(problem("none.parquet", "translation"), HasSubstr("not a text"));
  EXPECT_THAT(problem("none.parquet", "translation.fr"),
              HasSubstr("no column \"translation.fr\"; there are: text, large"));
  EXPECT_THAT(problem("nothing.parquet", "text"), HasSubstr("cannot read"));
  TempDir dir;
  const auto whole = read_file(path("snappy.parquet"));
  for (const size_t size : {size_t{0}, size_t{4}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomically(dir / "cut.parquet", whole.substr(0, size));
    EXPECT_THROW(read_table(dir / "cut.parquet", {{"text"}}, [](const TableRow&) {}), DataError);
  }
  auto damaged = whole;
  for (size_t i = 0; i < whole.size(); i += 997) {
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    write_file_atomically(dir / "damaged.parquet", damaged);
    try {
      read_table(dir / "damaged.parquet", {{"text"}}, [](const TableRow&) {});
    } catch (const DataError&) {  // damage within a text may go unnoticed
    }
  }
}

TEST_F(TablesParity, FewBytesDoNotFillTheMemory) {
  const auto problem = [&](const std::string& file) {
    return message_of<DataError>([&] { column(file, "text"); });
  };
  EXPECT_LT(std::filesystem::file_size(path("dictionary.parquet")), 20'000u);
  for (const char* file : {"dictionary.parquet", "prefixes.parquet"}) {
    const int64_t before = peak_resident_bytes();
    EXPECT_THAT(problem(file), AnyOf(HasSubstr("need more than 512 MiB of memory"),
                                     HasSubstr("its rows hold more than 1000 times the bytes")));
    EXPECT_LT(peak_resident_bytes() - before, int64_t{900} << 20) << file;
  }
  EXPECT_THAT(problem("rows.parquet"), HasSubstr("20000000 rows in"));
}

}  // namespace
}  // namespace zoo::testing
