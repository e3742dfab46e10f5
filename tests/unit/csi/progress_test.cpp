#include "csi/progress.hpp"

#include <gtest/gtest.h>

namespace spark::csi {
namespace {

std::string words(const std::string& progress) {
  return progress_in_words("imagenet", *parse_json_object(progress));
}

TEST(CsiProgress, ShowsTheShareDoneAndTheTimeLeft) {
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": 62, "bytes_total": 100, "eta_s": 170})"),
            "imagenet: 62 %, 3 min left");
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": 0, "bytes_total": 100, "eta_s": 7300})"),
            "imagenet: 0 %, 2 h 1 min left");
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": 99, "bytes_total": 100, "eta_s": 7.2})"),
            "imagenet: 99 %, 8 s left");
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": 1, "bytes_total": 2, "eta_s": null})"),
            "imagenet: 50 %");
}

TEST(CsiProgress, ShowsThePhaseAndTheReasonOfAStall) {
  EXPECT_EQ(words("{}"), "imagenet: queued");
  EXPECT_EQ(words(R"({"phase": "walking", "bytes_total": 0})"), "imagenet: walking");
  EXPECT_EQ(
      words(
          R"({"phase": "stalled", "bytes_done": 1, "bytes_total": 2, "eta_s": 5, "reason": "volume v is lost"})"),
      "imagenet: 50 %, stalled: volume v is lost");
}

TEST(CsiProgress, SurvivesFiguresThatMakeNoSense) {
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": -5, "bytes_total": 2, "eta_s": -1})"),
            "imagenet: 0 %");
  EXPECT_EQ(words(R"({"phase": "copying", "bytes_done": 9, "bytes_total": 2, "eta_s": 1e300})"),
            "imagenet: 100 %, 277777 h 46 min left");
}

}  // namespace
}  // namespace spark::csi
