#include "generation/rows/row_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

using ::testing::ElementsAre;

TEST(RowShares, EachRequestHasOneRowAndTheRestGoesByTurns) {
  const std::vector<BegunRow> rows = {{7, true}, {7, true},  {7, true}, {2, true},
                                      {9, true}, {2, false}, {9, false}};
  EXPECT_THAT(rows_that_grow(rows, 8, 1), ElementsAre(true, false, false, true, true, false, false));
  EXPECT_THAT(rows_that_grow(rows, 8, 4), ElementsAre(true, false, false, true, true, true, false));
  EXPECT_THAT(rows_that_grow(rows, 8, 6), ElementsAre(true, true, false, true, true, true, true));
  EXPECT_THAT(rows_that_grow(rows, 8, 8), ElementsAre(true, true, true, true, true, true, true));
}

TEST(RowShares, MoreRequestsThanPlacesWaitInTheirOrder) {
  const std::vector<BegunRow> rows = {{3, true}, {1, true}, {2, true}};
  EXPECT_THAT(rows_that_grow(rows, 2, 8), ElementsAre(false, true, true));
  EXPECT_THAT(rows_that_grow(rows, 2, 1), ElementsAre(false, true, true));
}

TEST(RowShares, RowsThatHaveGrownGoOnBeforeThoseThatHavePaused) {
  const std::vector<BegunRow> rows = {{1, false}, {1, true}, {1, false}};
  EXPECT_THAT(rows_that_grow(rows, 4, 1), ElementsAre(false, true, false));
  EXPECT_THAT(rows_that_grow(rows, 4, 2), ElementsAre(true, true, false));
  EXPECT_THAT(rows_that_grow({}, 4, 2), ElementsAre());
}

}  // namespace
}  // namespace zoo
