#include "base/json_log.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace spark {
namespace {

TEST(JsonLog, EachLineIsOneObjectWithTimeLevelAndMessage) {
  EXPECT_EQ(json_log_line(WallTime(std::chrono::seconds(0)), "info", "volume datasets: ready"),
            R"({"time":"1970-01-01T00:00:00Z","level":"info","message":"volume datasets: ready"})");
}

TEST(JsonLog, OmitsEmptyFields) {
  const std::string line = json_log_line(WallTime(std::chrono::seconds(0)), "warning", "line 1\nline \"2\"",
                                         {{"volume", "datasets"}, {"reason", ""}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = parse_json_object(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(get_string(*read, "message"), "line 1\nline \"2\"");
  EXPECT_EQ(get_string(*read, "volume"), "datasets");
  EXPECT_FALSE(read->contains("reason"));
}

}  // namespace
}  // namespace spark
