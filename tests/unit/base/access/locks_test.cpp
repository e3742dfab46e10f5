#include "base/access/locks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_folder.hpp"

namespace spark {
namespace {

using std::chrono::milliseconds;

unsigned mode_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(PrivateLock, IsWaitedForAndTheMessageNamesItsHolder) {
  const test::TempFolder folder;
  int begun[2];
  ASSERT_EQ(::pipe(begun), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto held = lock_private(folder.path(), milliseconds(0), "testing");
    if (::write(begun[1], held ? "y" : "n", 1) == 1) ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(begun[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const auto refused = lock_private(folder.path(), milliseconds(50), "noting damage");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Unavailable);
  EXPECT_THAT(refused.error().what, testing::StartsWith("noting damage: locking " + folder.path().native()));
  EXPECT_THAT(refused.error().what, testing::HasSubstr("(pid " + std::to_string(holder) + ", uid " +
                                                       std::to_string(::geteuid()) + ") has it"));
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(lock_private(folder.path(), milliseconds(10'000), "testing"));
  ::waitpid(holder, nullptr, 0);
  ::close(begun[0]);
  ::close(begun[1]);
}

TEST(Restriction, TakesAwayAndAddsNothing) {
  const test::TempFolder folder;
  const auto open = folder / "open", closed = folder / "closed", is_public = folder / "public";
  for (const auto& [path, mode] : {std::pair{open, 02755}, {closed, 0700}, {is_public, 01777}}) {
    std::filesystem::create_directory(path);
    ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
  }
  std::filesystem::create_symlink(open, folder / "link");
  for (const char* name : {"open", "closed", "public", "nothing"})
    EXPECT_TRUE(restrict_to(folder / name, 0711));
  EXPECT_EQ(mode_of(open), 02711U);
  EXPECT_EQ(mode_of(closed), 0700U);
  EXPECT_EQ(mode_of(is_public), 01777U) << "as /tmp is";
  EXPECT_TRUE(restrict_to(folder / "link", 0));
  EXPECT_EQ(mode_of(open), 02711U);
}

}  // namespace
}  // namespace spark
