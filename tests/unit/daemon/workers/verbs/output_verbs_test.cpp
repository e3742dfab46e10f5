#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/workers/verbs/verbs.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::workers {
namespace {

const ProgressLine kNoProgress = [](const json::object&) {};

TEST(StageOutVerb, ASourceThatChangedSinceItWasFoundCompleteIsNotSent) {
  const test::TempFolder folder;
  for (const char* made : {"out/step-1", "volume"}) std::filesystem::create_directories(folder / made);
  std::ofstream(folder / "out/step-1/model") << "x";
  json::object request{{"source", (folder / "out/step-1").native()},
                       {"root", (folder / "volume").native()},
                       {"path", "run7/step-1"},
                       {"uid", ::geteuid()},
                       {"latest", "link"},
                       {"changed_ns", 1}};
  const auto refused = stage_out_verb(request, kNoProgress);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Mismatch) << refused.error().message();
  EXPECT_FALSE(std::filesystem::exists(folder / "volume/run7/step-1"));
  request["changed_ns"] = 0;  // in the record of an earlier version
  const auto sent = stage_out_verb(request, kNoProgress);
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_TRUE(std::filesystem::exists(folder / "volume/run7/latest/model"));
}

}  // namespace
}  // namespace spark::workers
