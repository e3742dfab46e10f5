#include "staging/outputs/job_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/skip.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
using testing::HasSubstr;

constexpr uid_t kAlice = 4001, kBob = 4002;
constexpr char kNeedsRoot[] = "only root can make files of other users";

class JobFolder : public testing::Test {
 protected:
  // The folder, with the same owner for all parts below the test's folder.
  std::filesystem::path folder(const std::string& path, uid_t owner) {
    std::filesystem::path made = folder_.path();
    for (const auto& part : std::filesystem::path(path)) {
      made /= part;
      if (std::filesystem::create_directory(made)) own(made, owner);
    }
    return made;
  }
  std::filesystem::path link(const std::string& path, const std::filesystem::path& target, uid_t owner) {
    std::filesystem::create_symlink(target, folder_ / path);
    own(folder_ / path, owner);
    return folder_ / path;
  }
  static void own(const std::filesystem::path& path, uid_t owner) {
    if (::geteuid() != 0) return;
    ASSERT_EQ(::lchown(path.c_str(), owner, owner), 0);
  }
  static std::string refusal(const std::filesystem::path& path) {
    const auto owner = owner_of_job_folder(path);
    if (owner) return "it belongs to " + std::to_string(*owner);
    EXPECT_EQ(owner.error().kind, Errc::Refused) << owner.error().message();
    return owner.error().message();
  }

  TempFolder folder_;
};

TEST_F(JobFolder, BelowFoldersOfRootAndOfItsOwnerIsTheOwners) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  EXPECT_EQ(*owner_of_job_folder(folder("srv", 0)), 0u);
  EXPECT_EQ(*owner_of_job_folder(folder("srv/alice/out", kAlice)), kAlice);
}

TEST_F(JobFolder, BehindAUsersLinkToAnotherUsersFolderIsRefused) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  folder("bob/runs", kBob);
  folder("alice", kAlice);
  const auto runs = link("alice/runs", folder_ / "bob/runs", kAlice);
  EXPECT_THAT(refusal(runs), HasSubstr(runs.native() + " is a symbolic link of uid "));
  folder("bob/runs/out", kBob);
  EXPECT_THAT(refusal(runs / "out"), HasSubstr(runs.native() + " is a symbolic link of uid "))
      << "anywhere in the path";
  EXPECT_THAT(refusal(runs), HasSubstr("name the folder that it leads to"));
}

TEST_F(JobFolder, BehindAUsersLinkToItsOwnFolderIsFound) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  folder("scratch", 0), folder("scratch/alice/out", kAlice), folder("home", 0), folder("home/alice", kAlice);
  EXPECT_EQ(*owner_of_job_folder(link("home/alice/runs", folder_ / "scratch/alice", kAlice) / "out"), kAlice);
  folder("scratch/bob/out", kBob);
  link("scratch/alice/away", folder_ / "scratch/bob", kAlice);
  EXPECT_THAT(refusal(folder_ / "home/alice/runs/away/out"), HasSubstr("leads to files of another user"));
  link("scratch/alice/bobs", folder_ / "home/alice/runs/out", kBob);
  EXPECT_THAT(refusal(folder_ / "home/alice/runs/bobs"), HasSubstr("belongs to uid 4002"));
}

TEST_F(JobFolder, BehindALinkOfRootIsFound) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  folder("mnt", 0), folder("mnt/disk/run7", kAlice);
  EXPECT_EQ(*owner_of_job_folder(link("data", folder_ / "mnt/disk", 0) / "run7"), kAlice);
  EXPECT_EQ(*owner_of_job_folder(link("near", "mnt/../mnt/disk/run7", 0)), kAlice);
  link("bobs", "mnt/disk", kBob);
  EXPECT_THAT(refusal(link("chain", "bobs/run7", 0)), HasSubstr("bobs is a symbolic link of uid 4002"));
}

TEST_F(JobFolder, OfAnotherUserOrOfRootBelowAUsersFolderIsRefused) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  folder("alice", kAlice);
  const auto bobs = folder("alice/bob", kBob), roots = folder("alice/root", 0);
  EXPECT_THAT(refusal(bobs),
              HasSubstr(bobs.native() + " belongs to uid 4002, but is below a folder of uid 4001"));
  EXPECT_THAT(refusal(roots), HasSubstr("belongs to uid 0, but is below a folder of uid 4001"));
  EXPECT_THAT(refusal(folder("alice/root/alice", kAlice)), HasSubstr("belongs to uid 0"));
  EXPECT_THAT(refusal(link("alice/mnt", folder_ / "alice", 0)), HasSubstr("belongs to uid 0"))
      << "alice may have moved the link there";
}

TEST_F(JobFolder, OfRootThatOthersMayWriteToIsRefused) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  const auto roots = folder("out", 0);
  for (const unsigned mode : {01777U, 02775U, 0775U, 0757U}) {
    ASSERT_EQ(::chmod(roots.c_str(), mode), 0);
    const std::string why = refusal(roots);
    EXPECT_THAT(why, HasSubstr(roots.native() + " belongs to root, and other users may write to it"));
    EXPECT_THAT(why, HasSubstr("sudo chown USER " + roots.native()));
  }
  ASSERT_EQ(::chmod(roots.c_str(), 0755), 0);
  EXPECT_EQ(*owner_of_job_folder(roots), 0U);
  ASSERT_EQ(::chmod(roots.c_str(), 01777), 0);
  EXPECT_EQ(*owner_of_job_folder(folder("out/alice", kAlice)), kAlice) << "a user's folder below it";
  ASSERT_EQ(::chmod((roots / "alice").c_str(), 02775), 0);
  EXPECT_EQ(*owner_of_job_folder(roots / "alice"), kAlice) << "its files are read with alice's rights";
}

TEST_F(JobFolder, LinksThatLeadInACircleEnd) {
  if (::geteuid() != 0) SPARK_SKIP(kNeedsRoot);
  EXPECT_FALSE(owner_of_job_folder(link("a", "b", 0)));
  link("b", "a", 0);
  EXPECT_THAT(owner_of_job_folder(folder_ / "a").error().message(), HasSubstr("symbolic links"));
}

TEST_F(JobFolder, ThatIsMissingOrAFileIsRefusedWithTheNextStep) {
  const auto missing = owner_of_job_folder(folder_ / "none/run7");
  EXPECT_EQ(missing.error().kind, Errc::NotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("create the folder, and make the jobs' user its owner"));
  write_text(folder_ / "file", "x");
  EXPECT_EQ(owner_of_job_folder(folder_ / "file").error().kind, Errc::Invalid);
  EXPECT_EQ(owner_of_job_folder("relative").error().kind, Errc::Invalid);
}

}  // namespace
}  // namespace spark::staging
