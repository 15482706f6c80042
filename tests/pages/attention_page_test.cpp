#include "pages/attention/attention_page.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "io/files.h"
#include "tests/pages/page_support.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using testing::between;
using testing::count;
using testing::data_of;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kSource = {"</script>", "<b>", "\"quo'te\"", "\u2028", "&amp;", "<!--"};
const std::vector<std::string> kTarget = {"<bos>", "{{data}}", "\\"};

AttentionReport nasty_report() {
  torch::manual_seed(2);
  const auto weights = [](int64_t T, int64_t S) { return torch::randn({2, T, S}).mul(3).softmax(-1); };
  const auto S = static_cast<int64_t>(kSource.size()), T = static_cast<int64_t>(kTarget.size());
  const auto causal = weights(T, T).tril();
  return {.name = "a<b",
          .text = "</script><script>alert(1)</script> & \"{{script}}\"",
          .target = "'</title>'",
          .source_tokens = kSource,
          .target_tokens = kTarget,
          .target_next = {"{{data}}", "\\", "<eos>"},
          .layers = {{AttentionKind::encoder, 0, weights(S, S)},
                     {AttentionKind::encoder, 1, weights(S, S)},
                     {AttentionKind::decoder, 0, causal / causal.sum(-1, true)},
                     {AttentionKind::cross, 0, weights(T, S)}},
          .predictions = {
              {{"</script>", 0.5}, {"{{data}}", 0.25}, {"<b>", 0.125}, {"\u2028", 0.01}, {"a", 0.001}},
              {{"\\", 0.999}, {"&amp;", 1e-4}},
              {{"b", 0.3}, {"c", 0.2}, {"d", 0.1}}}};
}

/// A decoder's, with many layers, heads and tokens.
AttentionReport large_report() {
  torch::manual_seed(3);
  constexpr int64_t kTokens = 44;
  AttentionReport report{.name = "large", .text = std::string(300, 'x')};
  for (int64_t t = 0; t < kTokens; ++t) {
    report.source_tokens.push_back("▁token" + std::to_string(t));
    report.predictions.push_back({{"▁token" + std::to_string(t + 1), 0.5}, {"<eos>", 0.25}});
  }
  for (int64_t layer = 0; layer < 12; ++layer) {
    const auto causal = torch::randn({12, kTokens, kTokens}).mul(2).exp().tril();
    report.layers.push_back({AttentionKind::decoder, layer, causal / causal.sum(-1, true)});
  }
  return report;
}

/// A classifier's: it predicts no tokens.
AttentionReport classifier_report() {
  torch::manual_seed(4);
  return {.name = "classifier",
          .text = "good",
          .source_tokens = {"<cls>", "good", "<sep>"},
          .layers = {{AttentionKind::encoder, 0, torch::randn({2, 3, 3}).softmax(-1)}},
          .labels = {{"praise", 0.8}, {"<b>", 0.2}}};
}

constexpr int64_t kTimes = 24;

/// The encoder's part of a report about a recording.
AttentionReport recording_report() {
  torch::manual_seed(5);
  AttentionReport report{.name = "listener", .text = "seven.wav", .target = "se"};
  for (int64_t t = 0; t < kTimes; ++t)
    report.source_tokens.push_back(fmt::format("{:.2f} s", static_cast<double>(2 * t) / 100));
  report.recording = {.spectrogram = torch::randn({12, 2 * kTimes}), .frame_seconds = 0.01};
  report.layers.push_back({AttentionKind::encoder, 0, torch::randn({2, kTimes, kTimes}).softmax(-1)});
  return report;
}

/// A model's that is trained with CTC.
AttentionReport ctc_report() {
  auto report = recording_report();
  for (int64_t t = 0; t < kTimes; ++t)
    report.predictions.push_back({{t == 8 ? "s" : t == 14 || t == 15 ? "e" : "∅", 0.75}});
  return report;
}

/// A model's with a decoder.
AttentionReport listener_report() {
  auto report = recording_report();
  report.target_tokens = {"<bos>", "s", "e"};
  report.target_next = {"s", "e", "<eos>"};
  const auto T = std::ssize(report.target_tokens);
  const auto causal = torch::randn({2, T, T}).exp().tril();
  report.layers.push_back({AttentionKind::decoder, 0, causal / causal.sum(-1, true)});
  report.layers.push_back({AttentionKind::cross, 0, torch::randn({2, T, kTimes}).softmax(-1)});
  return report;
}

TEST(AttentionPage, HoldsExactlyTheWeights) {
  const auto report = nasty_report();
  const auto data = data_of(attention_page(report));
  ASSERT_EQ(data["maps"].size(), 3U);
  EXPECT_EQ(data["maps"][0]["kind"], "encoder");
  EXPECT_EQ(data["maps"][1]["kind"], "decoder");
  EXPECT_EQ(data["maps"][2]["kind"], "cross");
  ASSERT_EQ(data["maps"][0]["layers"].size(), 2U);
  ASSERT_EQ(data["maps"][1]["layers"].size(), 1U);
  ASSERT_EQ(data["maps"][2]["layers"].size(), 1U);
  const auto expect_equal = [](const nlohmann::json& heads, const torch::Tensor& weights) {
    ASSERT_EQ(heads.size(), 2U);
    for (int64_t h = 0; h < 2; ++h) {
      const auto flat = weights[h].flatten();
      ASSERT_EQ(heads[h].size(), static_cast<size_t>(flat.numel()));
      for (int64_t i = 0; i < flat.numel(); ++i)
        EXPECT_EQ(heads[h][i].get<int64_t>(), std::lround(flat[i].item<float>() * 999.0F));
    }
  };
  expect_equal(data["maps"][0]["layers"][0], report.layers[0].weights);
  expect_equal(data["maps"][0]["layers"][1], report.layers[1].weights);
  expect_equal(data["maps"][1]["layers"][0], report.layers[2].weights);
  expect_equal(data["maps"][2]["layers"][0], report.layers[3].weights);
}

TEST(AttentionPage, HoldsTheNumbersOfTheHeadsAndTheRollout) {
  const auto report = nasty_report();
  const auto data = data_of(attention_page(report));
  const auto heads = head_statistics(report);
  ASSERT_EQ(heads.size(), 8U);
  EXPECT_EQ(data["heads"], nlohmann::ordered_json::parse(to_json(heads)));
  const auto rollouts = attention_rollout(report);
  ASSERT_EQ(rollouts.size(), 4U);
  ASSERT_EQ(data["rollout"].size(), 4U);
  for (size_t i = 0; i < rollouts.size(); ++i) {
    EXPECT_EQ(data["rollout"][i]["kind"], name_of(rollouts[i].kind));
    EXPECT_EQ(data["rollout"][i]["layer"], rollouts[i].layer);
    const auto flat = rollouts[i].weights.flatten();
    const auto& rows = data["rollout"][i]["rows"];
    ASSERT_EQ(rows.size(), static_cast<size_t>(flat.numel()));
    for (int64_t j = 0; j < flat.numel(); ++j)
      EXPECT_NEAR(rows[j].get<double>(), flat[j].item<double>() * 999, 0.5001);
  }
}

TEST(AttentionPage, HoldsThePredictions) {
  const auto report = nasty_report();
  EXPECT_EQ(data_of(attention_page(report))["predictions"], predictions_json(report.predictions));
  const auto classifier = data_of(attention_page(classifier_report()));
  EXPECT_TRUE(classifier["predictions"].empty());
  EXPECT_EQ(classifier["labels"][1], (nlohmann::json{{"label", "<b>"}, {"probability", 0.2}}));
}

TEST(AttentionPage, HoldsTheSpectrogram) {
  const auto report = listener_report();
  const auto recording = data_of(attention_page(report)).at("recording");
  EXPECT_EQ(recording.at("frame_seconds"), 0.01);
  EXPECT_EQ(recording.at("bands"), 12);
  const auto levels = recording.at("levels").get<std::vector<double>>();
  const auto numbers = report.recording->spectrogram.to(torch::kDouble).flatten();
  ASSERT_EQ(std::ssize(levels), numbers.numel());
  const double least = numbers.min().item<double>(), range = numbers.max().item<double>() - least;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    EXPECT_NEAR(levels[static_cast<size_t>(i)], (numbers[i].item<double>() - least) / range * 255, 0.5001);
  }
  EXPECT_FALSE(data_of(attention_page(nasty_report())).contains("recording"));
}

TEST(AttentionPage, KeepsEveryTokenWhateverItLooksLike) {
  const auto report = nasty_report();
  const auto data = data_of(attention_page(report));
  EXPECT_EQ(data["name"], report.name);
  EXPECT_EQ(data["text"], report.text);
  EXPECT_EQ(data["target"], report.target);
  EXPECT_EQ(data["source_tokens"], nlohmann::json(kSource));
  EXPECT_EQ(data["target_tokens"], nlohmann::json(kTarget));
  EXPECT_EQ(data["target_next"], nlohmann::json(report.target_next));
}

TEST(AttentionPage, LetsNoTextBecomeMarkup) {
  const auto page = attention_page(nasty_report());
  EXPECT_EQ(count(page, "<script"), 2U);  // the data and the program
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_EQ(count(page, "</title"), 1U);
  EXPECT_EQ(count(page, "<!--"), 0U);
  EXPECT_EQ(between(page, "<title>", "</title>"),
            "Attention: &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;{{script}}&quot; → "
            "&#39;&lt;/title&gt;&#39;");
}

TEST(AttentionPage, NeedsNothingButItself) {
  const auto page = attention_page(nasty_report());
  for (const auto* reference : {"http:", "https:", "src=", "@import", "url(", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, Not(HasSubstr("{{style}}")));
}

TEST(AttentionPage, ShowsBrokenUtf8AsReplaced) {
  auto report = nasty_report();
  report.text = "\xff!";
  const auto page = attention_page(report);
  EXPECT_EQ(data_of(page)["text"], "\uFFFD!");
  EXPECT_THAT(between(page, "<title>", "</title>"), HasSubstr("\uFFFD!"));
}

// The browser test opens these pages, too.
TEST(AttentionPage, WritesPagesForABrowser) {
  testing::write_attention_pages({{"attention.html", nasty_report()},
                                  {"attention-large.html", large_report()},
                                  {"attention-classifier.html", classifier_report()},
                                  {"attention-listener.html", listener_report()},
                                  {"attention-ctc.html", ctc_report()}});
}

TEST(AttentionPage, SaysWhenATextIsTooLong) {
  AttentionReport report{.text = "a", .source_tokens = std::vector<std::string>(5000, "a")};
  report.layers.push_back({AttentionKind::decoder, 0, torch::zeros({1}).expand({1, 5000, 5000})});
  EXPECT_THROW(attention_page(report), DataError);
}

}  // namespace
}  // namespace zoo
