#include "comparison/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

std::vector<VerifiedDifference> differences_of(const Json& was, const Json& is, int64_t n_expected) {
  std::vector<VerifiedDifference> differences;
  EXPECT_EQ(compare_values(was, is, "", differences), n_expected);
  return differences;
}

auto at(const std::string& place) { return Field(&VerifiedDifference::place, place); }

TEST(Verify, FindsTheNumbersThatDiffer) {
  const Json was{{"seed", 1},
                 {"seconds", 3.5},
                 {"run", "runs/a"},
                 {"valid", {{"loss", 1.0000000000000002}, {"accuracy", nullptr}}},
                 {"curve", {{"step", {10, 20}}, {"valid_loss", {2.5, 1.25}}, {"seconds", {1, 2}}}}};
  auto is = was;
  is["seconds"] = 4.5;
  is["run"] = "runs/b";
  is["curve"]["seconds"] = {7, 8};
  is["more"] = "of a later version";
  EXPECT_THAT(differences_of(was, is, 7), IsEmpty());
  is["valid"]["loss"] = 1.0;
  is["valid"]["accuracy"] = 0.5;
  is["curve"]["valid_loss"][1] = 1.5;
  EXPECT_THAT(differences_of(was, is, 7),
              ElementsAre(at("valid.loss"), at("valid.accuracy"), at("curve.valid_loss[1] (step 20)")));
  is["curve"]["valid_loss"] = {1};
  EXPECT_THAT(differences_of(was, is, 6),
              ElementsAre(at("valid.loss"), at("valid.accuracy"), at("curve.valid_loss: how many")));
}

TEST(Verify, ComparesRoundedNumbersAsFarAsTheyGo) {
  const auto is_same = [](double was, double is) { return differences_of(was, is, 1).empty(); };
  EXPECT_TRUE(is_same(6.92747, 6.927468607938832));
  EXPECT_FALSE(is_same(6.92747, 6.927461));
  EXPECT_FALSE(is_same(6.927468607938832, 6.927468607938831));
  EXPECT_FALSE(is_same(6.9274686, 6.927468607938832)) << "these are eight digits";
  EXPECT_TRUE(is_same(0.5, 0.50000001));
  EXPECT_FALSE(is_same(0.5, 0.499999));
  EXPECT_FALSE(is_same(819200, 819201));
}

TEST(Verify, TakesTrainingsThatHadTheirEnd) {
  const auto seed = [](int64_t number, const char* end) { return Json{{"seed", number}, {"end", end}}; };
  const Json results{
      {"runs",
       {{{"name", "a"}, {"seeds", {seed(1, "failed"), seed(2, "all_steps")}}},
        {{"name", "b"},
         {"seeds", {seed(1, "out_of_time"), seed(2, "out_of_patience"), seed(3, "elsewhere")}}}}}};
  const auto trainings = trainings_of(results);
  ASSERT_EQ(trainings.size(), 2U);
  EXPECT_EQ(trainings[0].run, "a");
  EXPECT_EQ(trainings[0].seed, 2);
  EXPECT_EQ(trainings[1].run, "b");
  EXPECT_EQ(trainings[1].seed, 2);
  EXPECT_THROW(trainings_of(Json{{"runs", 7}}), DataError);
  EXPECT_THROW(trainings_of(Json::object()), DataError);
}

}  // namespace
}  // namespace zoo
