#include "io/config/given_values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

struct Lamp {
  int64_t watts = 40;
  double price = 1;
  std::optional<std::string> name = {};
  std::vector<std::string> rooms = {};
};
void describe(ConfigVisitor& v, Lamp& c) {
  v.field("watts", c.watts, ".");
  v.field("price", c.price, ".");
  v.field("name", c.name, ".");
  v.field("rooms", c.rooms, ".");
}

TEST(GivenValues, ArePutOverThoseThatAreThere) {
  GivenValues given;
  given.set("watts", int64_t{60});
  given.set("name", std::string("desk"));
  given.set("rooms", std::vector<std::string>{"study"});
  EXPECT_TRUE(given.has("name"));
  EXPECT_FALSE(given.has("price"));
  Lamp all{.price = 3};
  given.apply(all);
  EXPECT_EQ(all.watts, 60);
  EXPECT_EQ(all.price, 3);
  EXPECT_EQ(all.name, "desk");
  EXPECT_THAT(all.rooms, ::testing::ElementsAre("study"));
}

TEST(GivenValues, OneAloneChangesNoOther) {
  GivenValues given;
  given.set("watts", int64_t{60});
  given.set("name", std::string("desk"));
  Lamp one;
  given.apply_one("watts", one);
  EXPECT_EQ(one.watts, 60);
  EXPECT_EQ(one.name, std::nullopt);
  Lamp none;
  given.apply_one("price", none);
  EXPECT_EQ(none.watts, 40);
}

}  // namespace
}  // namespace zoo
