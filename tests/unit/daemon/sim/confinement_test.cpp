#include "daemon/sim/confinement.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark::sim {
namespace {

// Runs in a child process, since confinement can't be undone. Returns its exit status.
template <class Work>
int run_apart(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Confinement, EvenRootCannotMountAfterwards) {
  const int mounted = run_apart([] {
    if (!drop_privileges()) return 10;
    return ::mount("none", "/mnt", "tmpfs", 0, nullptr) == 0 ? 0 : errno;
  });
  EXPECT_EQ(mounted, EPERM);
}

TEST(Confinement, AProgramStartedAfterwardsCannotMount) {
  const int mounted = run_apart([] {
    if (!drop_privileges()) return 10;
    ::execlp("mount", "mount", "-t", "tmpfs", "none", "/mnt", nullptr);
    return 11;
  });
  EXPECT_NE(mounted, 0);
  EXPECT_NE(mounted, 10);
  EXPECT_NE(mounted, 11);
}

TEST(Confinement, AStateFolderIsForEitherASimulationOrARealHost) {
  const TemporaryFolder folder;
  EXPECT_TRUE(check_not_simulated(folder.path()));
  ASSERT_TRUE(claim_state_folder(folder.path() / "made"));
  EXPECT_TRUE(claim_state_folder(folder.path() / "made")) << "again";
  EXPECT_EQ(check_not_simulated(folder.path() / "made").error().kind, Errc::Invalid);

  std::filesystem::create_directories(folder.path() / "real/volumes");
  EXPECT_EQ(claim_state_folder(folder.path() / "real").error().kind, Errc::Invalid);
  EXPECT_TRUE(check_not_simulated(folder.path() / "real"));
}

}  // namespace
}  // namespace spark::sim
