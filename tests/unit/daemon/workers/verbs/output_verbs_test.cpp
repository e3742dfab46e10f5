#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

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

TEST(RecordedVerb, ARecordThatCannotBeReadIsNamedWithTheReason) {
  const test::TempFolder folder;
  std::ofstream(folder / "run7.json") << R"({"flushed": {}})";
  std::ofstream(folder / "run8.json") << "cut sh";
  std::filesystem::create_directory(folder / "run9.json");  // a read error, also for root
  const auto answer = recorded_verb({{"folder", folder.path().native()}}, kNoProgress);
  ASSERT_TRUE(answer) << answer.error().message();
  std::map<std::string, bool> is_read;
  for (const json::value& row : answer->at("records").as_array()) {
    const json::object& record = row.as_object();
    EXPECT_NE(record.contains("content"), record.contains("error"));
    is_read[std::filesystem::path(*get_string(record, "file")).filename()] = record.contains("content");
  }
  EXPECT_EQ(is_read,
            (std::map<std::string, bool>{{"run7.json", true}, {"run8.json", false}, {"run9.json", false}}));
}

TEST(RecordedVerb, AMissingFolderHasNoRecords) {
  const auto answer = recorded_verb({{"folder", "/no/such/folder"}}, kNoProgress);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(answer->at("records").as_array().empty());
}

}  // namespace
}  // namespace spark::workers
