#include "base/json.hpp"

#include <gtest/gtest.h>

namespace spark {
namespace {

TEST(Json, InvalidJsonIsRefused) {
  for (const char* text : {"", "{", "{} x", "{'a': 1}", "nul", "{\"a\":}"}) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().kind, Errc::Invalid);
    EXPECT_TRUE(value.error().what.starts_with("reading JSON: ")) << value.error().what;
  }
}

TEST(Json, NumbersBeyondTheRangeOfADoubleAreRefused) {
  EXPECT_FALSE(parse_json("1e999"));
  EXPECT_FALSE(parse_json("{\"a\": [{\"b\": -1e999}]}"));
  EXPECT_TRUE(parse_json("1e308"));
}

TEST(Json, DeepNestingIsRefused) {
  EXPECT_FALSE(parse_json(std::string(100'000, '[')));
}

TEST(Json, AnArrayIsRefusedWhereAnObjectIsExpected) {
  EXPECT_TRUE(parse_json_object("{\"a\": 1}"));
  EXPECT_EQ(parse_json_object("[1]").error().what, "reading JSON: not an object");
}

TEST(Json, NamesThatAreNotUtf8PassThrough) {
  const std::string name = "caf\xe9";
  const json::object sent = {{"name", name}};
  const auto got = parse_json_object(json::serialize(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(get_string(*got, "name"), name);
}

TEST(Json, MembersOfAnotherTypeAreTreatedAsAbsent) {
  const json::object object =
      parse_json_object(R"({"s": "x", "i": 3, "d": 1.5, "b": true, "n": null, "o": {}, "a": [1]})").value();
  EXPECT_EQ(get_string(object, "s"), "x");
  EXPECT_EQ(get_int(object, "i"), 3);
  EXPECT_EQ(get_double(object, "d"), 1.5);
  EXPECT_EQ(get_double(object, "i"), 3.0);
  EXPECT_EQ(get_bool(object, "b"), true);
  EXPECT_NE(get_object(object, "o"), nullptr);
  EXPECT_NE(get_array(object, "a"), nullptr);
  for (const char* key : {"n", "absent", "o", "a"}) {
    EXPECT_FALSE(get_string(object, key)) << key;
    EXPECT_FALSE(get_int(object, key)) << key;
    EXPECT_FALSE(get_double(object, key)) << key;
    EXPECT_FALSE(get_bool(object, key)) << key;
  }
  EXPECT_FALSE(get_int(object, "d"));
  EXPECT_FALSE(get_int(object, "s"));
  EXPECT_EQ(get_object(object, "a"), nullptr);
  EXPECT_EQ(get_array(object, "o"), nullptr);
}

TEST(Json, ErrorsSurviveSerialization) {
  const Error sent{Errc::NoSpace, "staging x: 3 GB are missing", "evict something"};
  const Error got = error_from_json(to_json(sent));
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.what, sent.what);
  EXPECT_EQ(got.hint, sent.hint);
  EXPECT_FALSE(got.is_away);
  Error away = sent;
  away.is_away = true;
  EXPECT_TRUE(error_from_json(to_json(away)).is_away);
  EXPECT_EQ(error_from_json({}).kind, Errc::Failed);
  EXPECT_FALSE(error_from_json({}).what.empty());
}

TEST(Json, PrettyIsIndentedAndParsesToTheSame) {
  const auto value = parse_json(R"({"a":[1,{"b\n":null}],"empty":{},"none":[],"s":"x\"y"})").value();
  EXPECT_EQ(pretty(value), R"({
  "a": [
    1,
    {
      "b\n": null
    }
  ],
  "empty": {},
  "none": [],
  "s": "x\"y"
})");
  EXPECT_EQ(parse_json(pretty(value)).value(), value);
}

TEST(Json, NumbersArePrintedAsPeopleWriteThem) {
  EXPECT_EQ(pretty(json::value(12.5)), "12.5");
  EXPECT_EQ(pretty(json::value(8.0)), "8.0");  // so that it is parsed as the same type
  EXPECT_EQ(pretty(json::value(0.1)), "0.1");
}

}  // namespace
}  // namespace spark
