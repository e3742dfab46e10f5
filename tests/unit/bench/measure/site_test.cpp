#include "bench/measure/site.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "bench/measure/plan.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;

const StopFlag kNotStopped = false;

Errc refusal_of(const std::string& path) {
  auto site = Site::inspect({"x", path}, SystemRoot{}, kNotStopped);
  EXPECT_FALSE(site) << path;
  return site ? Errc::Failed : site.error().kind;
}

TEST(Site, OnlyFoldersAreTaken) {
  const DiskFolder disk;
  write_text(disk / "file", "x");
  EXPECT_EQ(refusal_of(disk / "file"), Errc::Invalid);
  EXPECT_EQ(refusal_of(disk / "absent"), Errc::NotFound);
  EXPECT_EQ(refusal_of("/dev/null"), Errc::Refused);
  fs::create_directory(disk / "cut#here");
  EXPECT_EQ(refusal_of(disk / "cut#here"), Errc::Invalid);
}

TEST(Site, AFolderIsInspectedWithoutChangingIt) {
  const DiskFolder disk;
  fs::create_directory(disk / "real");
  fs::create_directory_symlink("real", disk / "link");
  auto site = Site::inspect({"x", disk / "link"}, SystemRoot{}, kNotStopped);
  ASSERT_TRUE(site);
  EXPECT_EQ(site->record.folder, fs::canonical(disk / "real").string());
  EXPECT_TRUE(site->is_usable());
  EXPECT_TRUE(site->is_writable());
  ASSERT_TRUE(site->record.mount);
  EXPECT_FALSE(site->record.mount->type.empty());
  EXPECT_GT(site->record.size, site->record.free);
  EXPECT_TRUE(fs::is_empty(disk / "real"));
}

TEST(Site, ItsFolderIsMadeAndRemovedAndASecondCloseDoesNothing) {
  const DiskFolder disk;
  auto site = Site::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
  ASSERT_TRUE(site);
  site->open(this_process(0), {16 * kMiB, 16}, kNotStopped);
  ASSERT_TRUE(site->is_usable()) << site->record.unusable;
  ASSERT_EQ(site->record.files.size(), 4u);
  EXPECT_EQ(site->record.files[3].bytes, 4 * kMiB);
  ASSERT_EQ(site->small_files.size(), 16u);
  EXPECT_EQ(fs::file_size(site->small_files[15]), kSmallFileSize);
  const fs::path folder = fs::path(site->record.files[0].path).parent_path();
  EXPECT_TRUE(fs::exists(folder / kScratchMarker));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(site->close());
  EXPECT_TRUE(site->close());
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(Site, ADroppedSiteRemovesItsFolder) {
  const DiskFolder disk;
  {
    auto site = Site::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    ASSERT_TRUE(site);
    site->open(this_process(0), {16 * kMiB, 16}, kNotStopped);
    const Site moved = std::move(*site);
    EXPECT_FALSE(fs::is_empty(disk.path()));
  }
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(Site, SpaceIsCountedForAllPathsOfAFileSystemAndFivePercentStayFree) {
  const DiskFolder disk;
  std::vector<Site> sites;
  for (const char* name : {"a", "b"}) {
    fs::create_directory(disk / name);
    sites.push_back(Site::inspect({name, disk / name}, SystemRoot{}, kNotStopped).value());
    sites.back().record.size = 100'000'000'000;
    sites.back().record.free = 10'000'000'000;
  }
  EXPECT_TRUE(check_space(sites, 2'500'000'000));
  const auto refused = check_space(sites, 2'600'000'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::NoSpace);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("5.20 GB"), HasSubstr("10.0 GB of 100 GB"), HasSubstr("--size")));
  sites[1].record.read_only_reason = "mounted read-only";
  EXPECT_TRUE(check_space(sites, 5'000'000'000));
}

// A mount of our own, seen by this call alone. Null if this process may not mount.
Result<json::value> with_mount(const char* type, const std::string& at, unsigned long flags,
                               const std::function<Result<json::value>()>& work) {
  return run_apart({"a test with a mount", Duration(30'000), nullptr}, [&]() -> Result<json::value> {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return nullptr;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return nullptr;
    if (::mount(at.c_str(), at.c_str(), type, flags & ~static_cast<unsigned long>(MS_RDONLY), nullptr) != 0) {
      return nullptr;
    }
    const bool read_only = (flags & MS_RDONLY) != 0;
    if (read_only && ::mount(nullptr, at.c_str(), nullptr, flags | MS_REMOUNT, nullptr) != 0) return nullptr;
    return work();
  });
}

TEST(Site, AReadOnlyMountIsReadFromItsExistingFiles) {
  const DiskFolder disk;
  write_text(disk / "shard", std::string(3 << 20, 'x'));
  const auto seen = with_mount(nullptr, disk.path(), MS_BIND | MS_RDONLY, [&]() -> Result<json::value> {
    auto site = Site::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!site) return site.take_error();
    site->open(this_process(0), {16 * kMiB, 16}, kNotStopped);
    json::object seen{{"reason", site->record.read_only_reason}, {"unusable", site->record.unusable}};
    seen["file"] = site->record.files.empty() ? "" : site->record.files[0].path;
    return seen;
  });
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(get_string(seen->as_object(), "reason"), "mounted read-only");
  EXPECT_EQ(get_string(seen->as_object(), "unusable"), "");
  EXPECT_EQ(get_string(seen->as_object(), "file"), fs::canonical(disk / "shard").string());
}

TEST(Site, AFileSystemThatRefusesDirectIoIsUnusableAndLeftClean) {
  const DiskFolder disk;
  const auto seen = with_mount("ramfs", disk.path(), 0, [&]() -> Result<json::value> {
    auto site = Site::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!site) return site.take_error();
    site->open(this_process(0), {16 * kMiB, 16}, kNotStopped);
    if (auto closed = site->close(); !closed) return closed.take_error();
    return json::object{{"unusable", site->record.unusable}, {"empty", fs::is_empty(disk.path())}};
  });
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process may not mount a ramfs";
  EXPECT_THAT(get_string(seen->as_object(), "unusable").value(), HasSubstr("O_DIRECT"));
  EXPECT_EQ(get_bool(seen->as_object(), "empty"), true);
}

TEST(Site, AFolderWithoutPermissionIsReadOnlyAndWithoutFilesUnusable) {
  const DiskFolder disk;
  const auto seen = run_apart({"as nobody", Duration(30'000), nullptr}, [&]() -> Result<json::value> {
    if (::chmod(disk.path().c_str(), 0555) != 0) return nullptr;
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return nullptr;
    auto site = Site::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!site) return site.take_error();
    site->open(this_process(0), {16 * kMiB, 16}, kNotStopped);
    return json::object{{"reason", site->record.read_only_reason}, {"unusable", site->record.unusable}};
  });
  if (!seen && seen.error().kind == Errc::Denied) GTEST_SKIP() << "nobody can't reach " << disk.path();
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process can't become nobody";
  EXPECT_EQ(get_string(seen->as_object(), "reason"), "no permission to write");
  EXPECT_THAT(get_string(seen->as_object(), "unusable").value(), HasSubstr("no file of at least 4 KiB"));
}

}  // namespace
}  // namespace spark::bench
