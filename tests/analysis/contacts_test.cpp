// Contacts of residues: lists and pictures. (tests/parity compares maps with transformers.)

#include "analysis/contacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

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

}  // namespace
}  // namespace zoo
