#include "bench/report/run_folder.hpp"

#include <gmock/gmock.h>

#include "bench/measure/bench.hpp"
#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;

void keep(const std::string& runs, const std::string& id) {
  Record record = sample_record();
  record.run_id = id;
  const auto folder = RunFolder::make(runs, id);
  ASSERT_TRUE(folder) << folder.error().message();
  ASSERT_TRUE(folder->write(record));
}

TEST(RunFolder, ASavedRunIsReadBackUnchanged) {
  const DiskFolder disk;
  keep(disk.path(), sample_record().run_id);
  const auto read = load_record(disk.path(), sample_record().run_id);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json_text(*read), json_text(sample_record()));
  EXPECT_EQ(text_table(*read), text_table(sample_record()));
}

TEST(RunFolder, ARunIsFoundByPartOfItsIdItsFolderAndItsFile) {
  const DiskFolder disk;
  keep(disk.path(), "20261120T162126Z-1f3a");
  keep(disk.path(), "20261121T080000Z-77aa");
  for (const std::string& name :
       {std::string("20261120"), std::string("1f3a"), disk / "20261120T162126Z-1f3a",
        disk / "20261120T162126Z-1f3a/record.json"}) {
    const auto record = load_record(disk.path(), name);
    ASSERT_TRUE(record) << name;
    EXPECT_EQ(record->run_id, "20261120T162126Z-1f3a");
  }
  EXPECT_EQ(load_record(disk.path(), "last")->run_id, "20261121T080000Z-77aa");
}

TEST(RunFolder, AMissingOrAmbiguousRunIsReported) {
  const DiskFolder disk;
  keep(disk.path(), "20261120T162126Z-1f3a");
  keep(disk.path(), "20261121T080000Z-77aa");
  EXPECT_EQ(load_record(disk.path(), "nosuch").error().kind, Errc::NotFound);
  EXPECT_EQ(load_record(disk.path(), "").error().kind, Errc::NotFound);
  const auto both = load_record(disk.path(), "202611");
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message(), HasSubstr("1f3a, 20261121T080000Z-77aa"));
}

TEST(RunFolder, ARecordOfAnotherSchemaIsRefusedWithTheReason) {
  const DiskFolder disk;
  write_text(disk / "old.json", R"({"schema": "spark-stage-bench/1"})");
  EXPECT_THAT(load_record(disk.path(), disk / "old.json").error().message(),
              HasSubstr("spark-stage-bench/2"));
  write_text(disk / "other.json", R"({"a": 1})");
  EXPECT_THAT(load_record(disk.path(), disk / "other.json").error().message(), HasSubstr("no record"));
}

TEST(RunFolder, TheListHasUnreadableRunsToo) {
  const DiskFolder disk;
  keep(disk.path(), "20261120T162126Z-1f3a");
  fs::create_directory(disk / "20261119T000000Z-0000");
  write_text(disk / "20261119T000000Z-0000/record.json", "{");
  const auto runs = list_runs(disk.path());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_FALSE(runs[0].problem.empty());
  EXPECT_EQ(runs[1].record.host.name, "spark-1");
  EXPECT_TRUE(list_runs(disk / "absent").empty());
}

}  // namespace
}  // namespace spark::bench
