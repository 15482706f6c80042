// The card of a part of a model.

#include "pages/probe/probe_page.h"

#include <gtest/gtest.h>

#include "tests/pages/page_support.h"

namespace zoo::testing {
namespace {

using Json = nlohmann::ordered_json;

Json check(const char* name, const char* role, const Json& holds, const char* says) {
  return {{"name", name}, {"role", role}, {"holds", holds}, {"value", 0.5}, {"says", says}};
}

Json card() {
  Json curve{
      {"part", "attention"}, {"lengths", {64, 128}}, {"seconds", {0.0001, 0.02}}, {"bytes", {5000, 2000000}}};
  for (const char* kind : {"seconds", "bytes"}) {
    for (const char* end : {"", "_low", "_high"}) curve[std::string(kind) + "_exponent" + end] = 1.5;
  }
  return {
      {"part", "attention"},
      {"name", "window"},
      {"type", "{type: window, size: 8, global_ids: []}"},
      {"doc", "A <b>sliding</b> window."},
      {"checks",
       {check("causal", "decoder", true, "another token changes earlier outputs not at all"),
        check("reach", "decoder", nullptr, "two layers see 17 of 48 tokens </script>"),
        check("gradients", "decoder", false, "the slope is another one")}},
      {"refused", {{{"role", "encoder"}, {"reason", "it sees the past alone"}}}},
      {"scaling", {curve}},
      {"scores",
       {{{"task", "recall"}, {"metric", "accuracy"}, {"value", 0.75}, {"percent", true}, {"steps", 400}}}}};
}

TEST(ProbePage, HoldsTheCardForOtherPrograms) {
  const auto page = probe_page(card());
  EXPECT_EQ(data_of(page), card());
  EXPECT_EQ(count(page, "<b>sliding"), 0U) << "text is no markup";
  EXPECT_EQ(between(page, "<title>", "</title>"), "attention window");
}

TEST(ProbePage, IsWrittenForBrowsers) { write_pages({{"probe.html", probe_page(card())}}); }

}  // namespace
}  // namespace zoo::testing
