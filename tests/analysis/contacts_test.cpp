// Contacts of residues: lists and pictures. (tests/parity compares maps with transformers.)

#include "analysis/contacts.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "analysis/contact_fit.h"
#include "base/error.h"
#include "models/contact_regression.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;

/// Three residues.
ContactMap three_residues() {
  return {.text = "MKV",
          .residues = {"M", "K", "V"},
          .probabilities =
              torch::tensor({{0.5, 0.25, 1.0}, {0.25, 0.5, 0.75}, {1.0, 0.75, 0.0}}, torch::kDouble)};
}

TEST(Contacts, TheLikeliestComeFirst) {
  const auto pairs_of = [](int64_t separation, int64_t most) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const auto& contact : likeliest_contacts(three_residues(), separation, most))
      pairs.emplace_back(contact.first, contact.second);
    return pairs;
  };
  EXPECT_THAT(pairs_of(1, 9), ElementsAre(std::pair(0, 2), std::pair(1, 2), std::pair(0, 1)));
  EXPECT_THAT(pairs_of(2, 9), ElementsAre(std::pair(0, 2)));
  EXPECT_THAT(pairs_of(1, 1), ElementsAre(std::pair(0, 2)));
  EXPECT_TRUE(pairs_of(3, 9).empty());
}

TEST(Contacts, TheJsonHasEveryPair) {
  const auto document = nlohmann::json::parse(to_json(three_residues()));
  EXPECT_EQ(document["text"], "MKV");
  EXPECT_EQ(document["residues"], nlohmann::json({"M", "K", "V"}));
  EXPECT_EQ(document["contacts"][0], nlohmann::json({0.5, 0.25, 1.0}));
}

TEST(Contacts, ThePictureIsDarkWhereResiduesTouch) {
  const auto picture = picture_of(three_residues(), 2);
  EXPECT_EQ(picture.shape.channels, 1);
  EXPECT_EQ(picture.shape.height, 6);
  EXPECT_EQ(picture.shape.width, 6);
  EXPECT_EQ(picture.pixels[4], 0);     // residues 1 and 3
  EXPECT_EQ(picture.pixels[35], 255);  // residue 3 with itself
  EXPECT_EQ(picture.pixels[0], 128);
}

TEST(ContactFit, NothingIsLeftToImprove) {
  torch::manual_seed(1);
  const auto features = torch::randn({2000, 6}, torch::kDouble);
  const auto truth = torch::tensor({2.0, -1.0, 0.5, 0.0, 0.0, 0.0}, torch::kDouble);
  const auto labels = (features.mv(truth) - 2 + torch::randn(2000, torch::kDouble)).gt(0).to(torch::kDouble);
  constexpr double c = 0.02;
  const auto fit = l1_logistic_fit(features, labels, c);
  // Where the loss is least, its slope is within the penalty's where a weight is zero, and opposes it else.
  const auto errors = c * ((features.mv(fit.weights) + fit.bias).sigmoid() - labels);
  const auto slopes = features.t().mv(errors);
  int n_zeros = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const double weight = fit.weights[i].item<double>(), slope = slopes[i].item<double>();
    n_zeros += weight == 0;
    if (weight == 0) {
      EXPECT_LE(std::abs(slope), 1);
    } else {
      EXPECT_NEAR(slope, weight > 0 ? -1 : 1, 1e-5);
    }
  }
  EXPECT_GE(n_zeros, 2);
  EXPECT_LE(n_zeros, 4);
  EXPECT_NEAR(errors.sum().item<double>(), 0, 1e-6);
}

TEST(ContactFit, TheLikeliestPairsOfEachRangeCount) {
  constexpr int64_t length = 30;
  auto touch = torch::zeros({length, length}, torch::kBool);
  auto probabilities = torch::zeros({length, length}, torch::kDouble);
  for (int64_t i = 0; i < 6; ++i) {  // all 21 pairs that are 24 and more apart; 13 touch
    for (int64_t j = i + 24; j < length; ++j) {
      const bool touches = (i + j) % 2 == 0 || (i == 0 && j == 25);
      touch[i][j] = touches;
      probabilities[i][j] = touches ? 0.9 : 0.5;
    }
  }
  touch[0][6] = true;
  const auto [short_range, medium_range, long_range] = contact_precisions(probabilities, touch);
  const double n_touch = touch.triu(24).sum().item<double>();
  EXPECT_DOUBLE_EQ(long_range->chance, n_touch / 21);
  EXPECT_DOUBLE_EQ(long_range->likeliest[0], n_touch / 21) << "there are fewer than L pairs";
  EXPECT_DOUBLE_EQ(long_range->likeliest[1], n_touch / 15);
  EXPECT_DOUBLE_EQ(long_range->likeliest[2], 1);
  EXPECT_DOUBLE_EQ(medium_range->chance, 0);
  EXPECT_DOUBLE_EQ(short_range->chance, 1.0 / 129);  // 24 + 23 + … + 19 pairs
  EXPECT_FALSE(contact_precisions(probabilities.slice(0, 0, 24).slice(1, 0, 24),
                                  touch.slice(0, 0, 24).slice(1, 0, 24))[2]);
}

TEST(ContactFit, ContactsThatAreInTheMapsAreFound) {
  const auto tokenizer = testing::letters();
  const auto model = testing::text_model(testing::small_config(Architecture::encoder), *tokenizer,
                                         HeadKind::masked_language_modeling);
  const ContactProgress quiet = [](int64_t, int64_t) {};
  std::vector<KnownContacts> proteins;
  for (const std::string letters : {"abcdeabdcaebcdabecdabceadbecab", "bdcaebacdebadcebacdebadbcaebac"}) {
    std::vector<std::string> labels;
    const auto map = corrected_maps(residue_maps(*model, *tokenizer, letters, labels))[0];
    EXPECT_EQ(labels.size(), letters.size());
    const auto far = map.masked_select(torch::ones_like(map, torch::kBool).triu(6));
    proteins.push_back({.name = "made up", .letters = letters, .touch = map.gt(far.median())});
  }
  // The penalty is for many pairs: few would leave all weights at zero.
  std::vector<KnownContacts> many;
  for (int i = 0; i < 100; ++i) many.insert(many.end(), proteins.begin(), proteins.end());
  const auto regression = fitted_regression(*model, *tokenizer, many, quiet);
  for (const auto& precisions : contact_precisions(*model, *tokenizer, *regression, proteins, quiet)) {
    EXPECT_GT(precisions[2]->likeliest[2], 0.8);
    EXPECT_LT(precisions[2]->chance, 0.7);
  }
  proteins[0].letters = "abcdé";  // five letters, six bytes
  EXPECT_THAT(testing::message_of<DataError>([&] { fitted_regression(*model, *tokenizer, proteins, quiet); }),
              ::testing::HasSubstr("made up: the tokenizer reads 6 residues as 5 tokens"));
}

}  // namespace
}  // namespace zoo
