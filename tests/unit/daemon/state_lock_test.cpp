#include "daemon/state_lock.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temp_folder.hpp"

namespace spark {
namespace {

using std::chrono::milliseconds;

TEST(StateLock, TheFolderIsOneDaemonsUntilThatEnds) {
  const test::TempFolder folder;
  auto first = lock_state(folder.path(), milliseconds(0));
  ASSERT_TRUE(first && *first) << "an empty folder can have a lock";
  const auto second = lock_state(folder.path(), milliseconds(50));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Errc::Unavailable);
  EXPECT_THAT(second.error().message(), testing::HasSubstr(folder.path().native()));
  first->reset();
  const auto third = lock_state(folder.path(), milliseconds(0));
  EXPECT_TRUE(third && *third) << "the file that is left is no lock";
}

TEST(StateLock, NoOtherUserCanOpenItsFile) {
  const test::TempFolder folder;
  const auto held = lock_state(folder.path(), milliseconds(0));
  struct stat info {};
  ASSERT_EQ(::stat((folder / "daemon.lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(StateLock, AFolderThatCanHaveNoneKeepsNoDaemonFromItsStart) {
  const test::TempFolder folder;
  std::ofstream(folder / "file") << "x";
  for (const char* name : {"missing", "file"}) {
    const auto held = lock_state(folder / name, milliseconds(0));
    EXPECT_TRUE(held && !*held) << name;
  }
}

}  // namespace
}  // namespace spark
