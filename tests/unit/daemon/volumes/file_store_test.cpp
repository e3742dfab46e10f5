// The records of a volume in the state folder.
#include "daemon/volumes/adapters/file_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

#include "daemon/workers/process_runner.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::volumes {
namespace {

TEST(FileStore, AFileSystemsRecordThatCannotBeReadIsNotTakenForNone) {
  const spark::test::TempFolder folder;
  boost::asio::io_context context;
  workers::ProcessRunner runner(context.get_executor(), "/bin/false");
  const SystemClock clock;
  HostSnapshot snapshot(clock);
  Asker asker(runner, snapshot, "data");
  FileStore store(asker, "data", folder / "");
  EXPECT_EQ(store.pinned_identity().value(), FilesystemIdentity{});
  const auto file = folder / "data.json";
  std::ofstream(file) << R"({"uuid": "2f7c")";
  FileStore damaged(asker, "data", folder / "");
  ASSERT_FALSE(damaged.pinned_identity());
  EXPECT_THAT(damaged.pinned_identity().error().message(), testing::HasSubstr(file.native()));
  std::ofstream(file) << R"({"uuid": "2f7c"})";
  EXPECT_EQ(damaged.pinned_identity().value().uuid, "2f7c");
  std::filesystem::remove(file);
  EXPECT_EQ(damaged.pinned_identity().value(), FilesystemIdentity{});
}

TEST(FileStore, ARecordIsNeverWaitedFor) {
  const spark::test::TempFolder folder;
  boost::asio::io_context context;
  workers::ProcessRunner runner(context.get_executor(), "/bin/false");
  const SystemClock clock;
  HostSnapshot snapshot(clock);
  Asker asker(runner, snapshot, "data");
  for (const char* name : {"data.json", "data.held.json", "data.to-write.json", "data.intent.json"})
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
  FileStore store(asker, "data", folder / "");
  EXPECT_FALSE(store.pinned_identity());
  EXPECT_FALSE(store.saved_intent());
  EXPECT_TRUE(store.saved(Record::Held).empty());
  EXPECT_TRUE(store.saved(Record::ToWrite).empty());
}

}  // namespace
}  // namespace spark::volumes
