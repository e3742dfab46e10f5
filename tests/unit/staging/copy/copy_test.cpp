#include "staging/copy/copy.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <set>

#include "base/file.hpp"
#include "staging/copy/copy_with.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(CopyTest, HashDependsOnContentAloneNotOnThreadsOrChunks) {
  write_text(source_ / "large", noise(30'000'001, 1));
  write_text(source_ / "small", "x");
  std::string first;
  for (const auto& [threads, chunk] : {std::pair{1U, 64 * kKiB}, {2U, 2 * kMiB}, {7U, 8 * kMiB}}) {
    options_.threads = threads;
    options_.chunk = chunk;
    std::filesystem::remove_all(copy_);
    const auto report = copy_now();
    ASSERT_OK(report);
    if (first.empty()) first = report->hash;
    EXPECT_EQ(report->hash, first);
  }
}

TEST_F(CopyTest, SelectedFoldersAreCopiedWithTheirParentsAndNothingElse) {
  for (const char* name : {"a/1/x", "a/1/y", "a/2/x", "b/x", "b-c/x", "top"})
    write_text(source_ / name, name);
  std::filesystem::create_hard_link(source_ / "a/1/x", source_ / "a/1/z");
  std::filesystem::permissions(source_ / "a", std::filesystem::perms::owner_all);
  options_.only = {"b", "a/1"};
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->files, 4u);
  std::set<std::string> found;
  for (const auto& one : std::filesystem::recursive_directory_iterator(copy_))
    found.insert(one.path().lexically_relative(copy_).native());
  EXPECT_EQ(found, (std::set<std::string>{"a", "a/1", "a/1/x", "a/1/y", "a/1/z", "b", "b/x"}));
  EXPECT_EQ(std::filesystem::status(copy_ / "a").permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::hard_link_count(copy_ / "a/1/z"), 2u);
}

TEST_F(CopyTest, AMissingSelectedFolderIsNamed) {
  write_text(source_ / "a/x", "x");
  options_.only = {"b"};
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message().find("/b"), std::string::npos) << report.error().message();
}

TEST_F(CopyTest, FiveGibibytesOfHoleAreCopiedAsAHole) {
  std::filesystem::create_directories(source_);
  {
    const UniqueFd fd(::open((source_ / "model").c_str(), O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(::ftruncate(fd.get(), 5 * static_cast<off_t>(kGiB) + 1), 0);
    ASSERT_EQ(::pwrite(fd.get(), "middle", 6, 3 * static_cast<off_t>(kGiB) - 3), 6);
    ASSERT_EQ(::pwrite(fd.get(), "z", 1, 5 * static_cast<off_t>(kGiB)), 1);
  }
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->bytes, 5 * kGiB + 1);
  EXPECT_LT(allocated(copy_ / "model"), kMiB);
  const UniqueFd fd(::open((copy_ / "model").c_str(), O_RDONLY));
  char middle[6];
  ASSERT_EQ(::pread(fd.get(), middle, 6, 3 * static_cast<off_t>(kGiB) - 3), 6);
  EXPECT_EQ(std::string_view(middle, 6), "middle");
  EXPECT_EQ(std::filesystem::file_size(copy_ / "model"), 5 * kGiB + 1);
}

TEST_F(CopyTest, HoleAndZerosHaveOneHash) {
  write_text(source_ / "f", std::string(20'000'000, '\0'));
  const auto zeros = copy_now();
  ASSERT_OK(zeros);
  const auto mtime = std::filesystem::last_write_time(source_ / "f");
  std::filesystem::resize_file(source_ / "f", 0);
  std::filesystem::resize_file(source_ / "f", 20'000'000);
  std::filesystem::last_write_time(source_ / "f", mtime);
  const auto hole = copy_now();
  ASSERT_OK(hole);
  EXPECT_EQ(zeros->hash, hole->hash);
}

TEST_F(CopyTest, OneFileIsCopiedToTheName) {
  write_text(source_, noise(10'000'000, 4));
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->files, 1U);
  EXPECT_EQ(read_text(copy_), read_text(source_));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, ASymlinkGivenAsTheSourceIsFollowed) {
  write_text(folder_ / "real/f", "x");
  std::filesystem::create_directory_symlink(folder_ / "real", source_);
  ASSERT_OK(copy_now());
  EXPECT_EQ(read_text(copy_ / "f"), "x");
}

TEST_F(CopyTest, ALinkAsTheSourceIsRefusedIfTheSourceMayBeNone) {
  write_text(folder_ / "private/key", "secret");
  options_.refuses_linked_source = true;
  for (const char* target : {"private", "private/key", "gone"}) {
    std::filesystem::create_symlink(folder_ / target, source_);
    EXPECT_KIND(copy_now(), Errc::Refused);
    EXPECT_FALSE(std::filesystem::exists(copy_));
    std::filesystem::remove(source_);
  }
  EXPECT_KIND(copy_now(), Errc::NotFound);
  std::filesystem::create_directory_symlink(folder_ / "private", folder_ / "linked");
  source_ = folder_ / "linked/model";
  write_text(source_, "x");
  ASSERT_OK(copy_now());
  EXPECT_EQ(read_text(copy_), "x") << "a folder above it may be a link";
}

TEST_F(CopyTest, SpecialFilesAreSkippedAndNamed) {
  write_text(source_ / "sub/f", "x");
  ASSERT_EQ(::mkfifo((source_ / "sub/pi\npe").c_str(), 0644), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::mknod((source_ / "disk").c_str(), S_IFBLK | 0600, makedev(7, 200)), 0);
    ASSERT_EQ(::mknod((source_ / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
  }
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  (source_ / "sock").native().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->files, 1U);
  std::vector<std::string> expected = {"sock (socket)", "sub/pi\\x0ape (FIFO)"};
  if (::geteuid() == 0) {
    expected = {"disk (block device)", "null (character device)", "sock (socket)", "sub/pi\\x0ape (FIFO)"};
  }
  EXPECT_EQ(report->skipped, expected);
  EXPECT_FALSE(std::filesystem::exists(copy_ / "sub/pi\npe"));
}

TEST_F(CopyTest, AclsAreKept) {
  // Version 2, then {tag, permissions, id}: the owner, user 1000, the group, the mask, others.
  const unsigned char acl[] = {2, 0,   0,   0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,    6,
                               0, 232, 3,   0,   0,   4,   0,    4, 0,   255, 255, 255, 255, 0x10, 0,
                               6, 0,   255, 255, 255, 255, 0x20, 0, 4,   0,   255, 255, 255, 255};
  write_text(source_ / "f", "x");
  ASSERT_EQ(::setxattr((source_ / "f").c_str(), "system.posix_acl_access", acl, sizeof acl, 0), 0);
  ASSERT_OK(copy_now());
  char found[sizeof acl];
  EXPECT_EQ(::getxattr((copy_ / "f").c_str(), "system.posix_acl_access", found, sizeof found),
            static_cast<ssize_t>(sizeof acl));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, PathsLongerThanPathMaxAreCopied) {
  UniqueFd at(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::mkdirat(at.get(), "source", 0755), 0);
  at.reset(::openat(at.get(), "source", O_RDONLY | O_DIRECTORY));
  const std::string name(250, 'd');
  for (int depth = 0; depth < 40; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
  }
  UniqueFd file(::openat(at.get(), "f", O_WRONLY | O_CREAT, 0644));
  ASSERT_EQ(::write(file.get(), "deep", 4), 4);
  file.reset();
  options_.verify = true;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->bytes, 4U);
  EXPECT_EQ(report->files, 1U);
}

TEST_F(CopyTest, ExcludesByPathAndByLastName) {
  for (const char* name : {"keep/a.tmp", "keep/b", "drop/c", "logs/x/y"}) write_text(source_ / name, "x");
  options_.exclude = {"*.tmp", "drop", "logs/*"};
  ASSERT_OK(copy_now());
  EXPECT_TRUE(std::filesystem::exists(copy_ / "keep/b"));
  EXPECT_TRUE(std::filesystem::exists(copy_ / "logs"));
  for (const char* name : {"keep/a.tmp", "drop", "logs/x"})
    EXPECT_FALSE(std::filesystem::exists(copy_ / name));
}

TEST_F(CopyTest, AMountInsideIsRefusedUnlessExcluded) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  write_text(source_ / "f", "x");
  const SmallTmpfs mounted(source_ / "other", "size=1m");
  const auto refused = copy_now();
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("source/other: another file system is mounted there"),
            std::string::npos);
  options_.exclude = {"other"};
  ASSERT_OK(copy_now());
}

TEST_F(CopyTest, SetuidBitsOfANosuidSourceAreDropped) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const TempFolder other;
  const SmallTmpfs mounted(other / "m", "size=1m", MS_NOSUID);
  write_text(other / "m/tool", "x");
  ASSERT_EQ(::chmod((other / "m/tool").c_str(), 04755), 0);
  source_ = other / "m";
  ASSERT_OK(copy_now());
  struct stat info {};
  ASSERT_EQ(::stat((copy_ / "tool").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755U);
}

// --- existing content of the destination

TEST_F(CopyTest, AForeignFolderAtTheDestinationIsRefusedAndKept) {
  write_text(source_ / "f", "x");
  write_text(copy_ / "mine", "precious");
  EXPECT_KIND(copy_now(), Errc::Refused);
  EXPECT_EQ(read_text(copy_ / "mine"), "precious");
  EXPECT_FALSE(has_partial());
}

TEST_F(CopyTest, ADestinationInsideOrAroundTheSourceIsInvalid) {
  write_text(source_ / "sub/f", "x");
  copy_ = source_ / "sub/copy";
  EXPECT_KIND(copy_now(), Errc::Invalid);
  copy_ = source_;
  EXPECT_KIND(copy_now(), Errc::Invalid);
  std::swap(source_, copy_);
  source_ = copy_ / "sub";
  EXPECT_KIND(copy_now(), Errc::Invalid);
}

TEST_F(CopyTest, AMissingSourceOrParentFolderIsNamed) {
  EXPECT_KIND(copy_now(), Errc::NotFound);
  write_text(source_ / "f", "x");
  copy_ = folder_ / "no/such/copy";
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::NotFound);
  EXPECT_NE(report.error().message().find("no/such"), std::string::npos);
}

TEST_F(CopyTest, APartialFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make another user's folder";
  write_text(source_ / "f", "x");
  std::filesystem::create_directories(folder_ / ".copy.spark-partial");
  ASSERT_EQ(::chown((folder_ / ".copy.spark-partial").c_str(), 1000, 1000), 0);
  EXPECT_KIND(copy_now(), Errc::Refused);
}

TEST_F(CopyTest, ADestinationNameOf255BytesIsPossible) {
  write_text(source_ / "f", "x");
  copy_ = folder_ / std::string(255, 'n');
  ASSERT_OK(copy_now());
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_TRUE(again->unchanged);
}

}  // namespace
}  // namespace spark::staging
