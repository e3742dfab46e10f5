#include "base/described.hpp"

#include <gtest/gtest.h>

namespace spark::test {
namespace {

enum class Colour { Red, Green };
struct Inner {
  std::string name;
  std::optional<std::chrono::seconds> wait;
  bool operator==(const Inner&) const = default;
};
struct Outer {
  Inner inner;
  Colour colour = Colour::Red;
  std::vector<Inner> all;
  std::filesystem::path path;
  double part = 0;
  std::uint64_t large = 0;
  std::uint16_t small = 0;
  int below = 0;
  bool flag = false;
  std::map<std::uint64_t, Inner> by_number;
  bool operator==(const Outer&) const = default;
};
SPARK_MESSAGE(Inner, (name, wait));
SPARK_MESSAGE(Outer, (inner, colour, all, path, part, large, small, below, flag, by_number));

const Outer kFull{{"a \"name\"", std::chrono::seconds(7)},
                  Colour::Green,
                  {{"one", std::nullopt}, {"two", std::chrono::seconds(0)}},
                  "/bytes/\xff\xfe",
                  0.25,
                  ~std::uint64_t{0},
                  65535,
                  -3,
                  true,
                  {{~std::uint64_t{0}, {"last", std::nullopt}}}};

TEST(Message, EveryFieldSurvivesSerialization) {
  const auto text = json::serialize(to_message(kFull));
  const auto parsed = parse_json_object(text);
  ASSERT_TRUE(parsed);
  const auto back = from_message<Outer>(*parsed);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, kFull);
}

TEST(Message, AFieldThatIsMissingIsAnError) {
  for (const auto& [key, value] : to_message(kFull)) {
    json::object without = to_message(kFull);
    without.erase(key);
    EXPECT_FALSE(from_message<Outer>(without)) << key;
  }
}

TEST(Message, AFieldOfAnotherTypeOrOutOfRangeIsAnError) {
  const std::vector<std::pair<std::string, json::value>> wrong = {
      {"inner", "text"}, {"colour", "green"}, {"all", json::object{}}, {"path", 7}, {"part", "half"},
      {"large", -1},     {"small", 65536},    {"below", 1e300},        {"flag", 1}};
  for (const auto& [key, value] : wrong) {
    json::object object = to_message(kFull);
    object[key] = value;
    EXPECT_FALSE(from_message<Outer>(object)) << key;
  }
}

}  // namespace
}  // namespace spark::test
