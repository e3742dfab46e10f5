// With users of a host, as root only: another user's process has its own rights, whatever it opens.
#include "base/access/named_path.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark {
namespace {

using testing::HasSubstr;

constexpr uid_t kAlice = 4001, kBob = 4002;

class NamedPathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) SPARK_SKIP("only root can make files of other users");
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    folder("scratch", 0, 0755);
    folder("scratch/bob", kBob, 0755);
    folder("secret", 0, 0700);
    folder("secret/ds", 0, 0755);
    std::ofstream(folder_ / "secret/ds/file") << "secret";
  }
  std::filesystem::path folder(const std::string& path, uid_t owner, mode_t mode) {
    std::filesystem::path made = folder_ / path;
    std::filesystem::create_directory(made);
    EXPECT_EQ(::chmod(made.c_str(), mode), 0);
    EXPECT_EQ(::lchown(made.c_str(), owner, owner), 0);
    return made;
  }
  std::filesystem::path link(const std::string& path, const std::filesystem::path& target, uid_t owner) {
    std::filesystem::create_symlink(target, folder_ / path);
    EXPECT_EQ(::lchown((folder_ / path).c_str(), owner, owner), 0);
    return folder_ / path;
  }
  static std::string refusal(const Result<NamedPath>& named) {
    EXPECT_FALSE(named) << named->path;
    if (named) return "";
    EXPECT_EQ(named.error().kind, Errc::Refused) << named.error().message();
    return named.error().message();
  }
  std::string path_of(const std::filesystem::path& path, Links links = Links::Followed) {
    const auto named = open_named(path, links);
    return named ? named->path : named.error().message();
  }

  test::TempFolder folder_;
};

TEST_F(NamedPathTest, ALinkIsFollowedOnlyWhereItsOwnerMayGo) {
  const auto closed = link("scratch/bob/ds", folder_ / "secret/ds", kBob);
  const std::string said = refusal(open_named(closed, Links::Followed));
  EXPECT_THAT(said, HasSubstr("the symbolic link " + closed.native() + " is not root's, and uid 4002"));
  refusal(open_named(closed / "file", Links::Followed));
  refusal(open_named(closed / "nothing", Links::Followed));
  folder("open", 0, 0755);
  folder("open/v7", kAlice, 0700);
  refusal(open_named(link("scratch/bob/other", folder_ / "open/v7", kBob), Links::Followed));
  std::ofstream(folder_ / "open/key") << "secret";
  ASSERT_EQ(::chmod((folder_ / "open/key").c_str(), 0600), 0);
  refusal(open_named(link("scratch/bob/key", folder_ / "open/key", kBob), Links::Followed));
  EXPECT_EQ(path_of(folder_ / "scratch/bob"), (folder_ / "scratch/bob").native());
  folder("scratch/bob/v8", kBob, 0755);
  EXPECT_EQ(path_of(link("scratch/bob/newest", "./v8/../v8", kBob)), (folder_ / "scratch/bob/v8").native());
}

TEST_F(NamedPathTest, WhatIsBehindAUsersLinkIsEnteredWithThatUsersRightsToTheEnd) {
  folder("home", 0, 0755);
  folder("home/alice", kAlice, 0700);
  folder("home/alice/ds", kAlice, 0755);
  const auto home = link("scratch/bob/home", folder_ / "home", kBob);
  EXPECT_EQ(path_of(home), (folder_ / "home").native());
  refusal(open_named(home / "alice/ds", Links::Followed));
  // A link of root's in a folder of bob's: he may have moved it there.
  refusal(open_named(link("scratch/bob/moved", folder_ / "secret/ds", 0), Links::Followed));
  // Nor does alice's link, behind bob's, give him her rights.
  folder("scratch/alice", kAlice, 0755);
  link("scratch/alice/own", folder_ / "home/alice/ds", kAlice);
  EXPECT_EQ(path_of(folder_ / "scratch/alice/own"), (folder_ / "home/alice/ds").native());
  refusal(open_named(link("scratch/bob/hers", folder_ / "scratch/alice/own", kBob), Links::Followed));
}

TEST_F(NamedPathTest, ALinkWhereOthersMayRenameIsFollowedWithTheirRights) {
  constexpr gid_t kTeam = 4711;
  folder("data", 0, 02775);
  folder("shared", 0, 0750);
  folder("shared/ds", 0, 0755);
  for (const char* name : {"data", "shared"}) ASSERT_EQ(::chown((folder_ / name).c_str(), 0, kTeam), 0);
  ASSERT_EQ(::chmod((folder_ / "data").c_str(), 02775), 0);
  refusal(open_named(link("data/ds", folder_ / "secret/ds", 0), Links::Followed));
  EXPECT_EQ(path_of(link("data/own", folder_ / "shared/ds", 0)), (folder_ / "shared/ds").native())
      << "the group may";
  folder("tmp", 0, 01777);
  EXPECT_EQ(path_of(link("tmp/ds", folder_ / "secret/ds", 0)), (folder_ / "secret/ds").native());
  folder("open", 0, 0777);
  refusal(open_named(link("open/own", folder_ / "shared/ds", 0), Links::Followed));
}

TEST_F(NamedPathTest, LinksOfRootLeadAnywhere) {
  EXPECT_EQ(path_of(link("ds", folder_ / "secret/ds", 0)), (folder_ / "secret/ds").native());
  EXPECT_EQ(path_of(folder_ / "ds/file"), (folder_ / "secret/ds/file").native());
  EXPECT_EQ(path_of(folder_ / "ds", Links::LastIsItself), (folder_ / "ds").native());
  EXPECT_EQ(path_of(folder_ / "ds/", Links::LastIsItself), (folder_ / "secret/ds").native());
  EXPECT_EQ(path_of(folder_ / "ds/../ds", Links::OfRootAlone), (folder_ / "secret/ds").native());
  refusal(open_named(link("scratch/bob/ds", folder_.path(), kBob), Links::OfRootAlone));
  link("loop", "loop", 0);
  EXPECT_THAT(path_of(folder_ / "loop"), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(NamedPathTest, TheProcessHasItsOwnRightsAndSettingsAgain) {
  ASSERT_EQ(::prctl(PR_SET_PDEATHSIG, SIGTERM), 0);
  refusal(open_named(link("scratch/bob/ds", folder_ / "secret/ds", kBob), Links::Followed));
  int signal = 0;
  ASSERT_EQ(::prctl(PR_GET_PDEATHSIG, &signal), 0);
  EXPECT_EQ(signal, SIGTERM);
  ASSERT_EQ(::prctl(PR_SET_PDEATHSIG, 0), 0);
  const UniqueFd file(::open((folder_ / "secret/ds/file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(file);
}

TEST_F(NamedPathTest, NoLinkLeadsOutOfTheVolumeAndNoAnswerTellsWhatIsThere) {
  const auto volume = folder("volume", 0, 0755);
  if (::mount("none", volume.c_str(), "tmpfs", 0, "mode=1777") != 0)
    SPARK_SKIP("mounting is not allowed here");
  folder("volume/runs", kAlice, 0755);
  folder("volume/runs/v1", kAlice, 0755);
  struct stat info {};
  ASSERT_EQ(::stat(volume.c_str(), &info), 0);
  const Within within{volume.native(), info.st_dev};
  const auto look = [&](const std::filesystem::path& path) {
    const auto named = open_named(path, Links::Followed, within);
    return named ? named->path : refusal(named);
  };
  EXPECT_EQ(look(link("volume/runs/absolute", volume / "runs/v1", kAlice)), (volume / "runs/v1").native());
  EXPECT_EQ(look(link("volume/runs/newest", "../runs/v1", kAlice)), (volume / "runs/v1").native());
  const auto out = link("volume/runs/out", "/etc", kAlice), up = link("volume/runs/up", "../../..", kAlice);
  for (const auto& path : {out, out / "passwd", out / "nothing", up, up / "nothing"})
    EXPECT_THAT(look(path), HasSubstr("leads out of the volume")) << path;
}

TEST(NamedPath, OfAnOrdinaryUserIsTheKernels) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "a");
  std::ofstream(folder / "a/file") << "x";
  std::filesystem::create_symlink("a/../a", folder / "link");
  const auto named = open_named(folder / "link/file", Links::Followed);
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->path, std::filesystem::canonical(folder / "link/file"));
  EXPECT_TRUE(S_ISREG(named->info.st_mode));
  EXPECT_FALSE(open_named(folder / "a/file/x", Links::Followed));
  EXPECT_EQ(open_named(folder / "nothing", Links::Followed).error().kind, Errc::NotFound);
  const auto here = open_named(".", Links::Followed);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->path, std::filesystem::current_path());
}

}  // namespace
}  // namespace spark
