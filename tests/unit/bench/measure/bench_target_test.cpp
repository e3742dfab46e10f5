#include "bench/measure/bench_target.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "bench/measure/bench.hpp"
#include "bench/measure/copy_work.hpp"
#include "bench/measure/plan.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;

const StopFlag kNotStopped = false;

Errc refusal_of(const std::string& path) {
  auto target = BenchTarget::inspect({"x", path}, SystemRoot{}, kNotStopped);
  EXPECT_FALSE(target) << path;
  return target ? Errc::Failed : target.error().kind;
}

TEST(BenchTarget, OnlyFoldersAreTaken) {
  const DiskFolder disk;
  write_text(disk / "file", "x");
  EXPECT_EQ(refusal_of(disk / "file"), Errc::Invalid);
  EXPECT_EQ(refusal_of(disk / "absent"), Errc::NotFound);
  EXPECT_EQ(refusal_of("/dev/null"), Errc::Refused);
  fs::create_directory(disk / "cut#here");
  EXPECT_EQ(refusal_of(disk / "cut#here"), Errc::Invalid);
}

TEST(BenchTarget, AFolderIsInspectedWithoutChangingIt) {
  const DiskFolder disk;
  fs::create_directory(disk / "real");
  fs::create_directory_symlink("real", disk / "link");
  auto target = BenchTarget::inspect({"x", disk / "link"}, SystemRoot{}, kNotStopped);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->record.folder, fs::canonical(disk / "real").string());
  EXPECT_TRUE(target->is_usable());
  EXPECT_TRUE(target->is_writable());
  ASSERT_TRUE(target->record.mount);
  EXPECT_FALSE(target->record.mount->type.empty());
  EXPECT_GT(target->record.size, target->record.free);
  EXPECT_TRUE(fs::is_empty(disk / "real"));
}

TEST(BenchTarget, CloseRemovesItsFolderAndMayBeRepeated) {
  const DiskFolder disk;
  auto target = BenchTarget::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
  ASSERT_TRUE(target);
  target->open(this_process(0), {16 * kMiB, made_up_work(16, kSmallFileSize), ""}, kNotStopped);
  ASSERT_TRUE(target->is_usable()) << target->record.unusable;
  ASSERT_EQ(target->record.files.size(), 4u);
  EXPECT_EQ(target->record.files[3].bytes, 4 * kMiB);
  ASSERT_EQ(target->small_files.size(), 16u);
  EXPECT_EQ(fs::file_size(target->small_files[15]), kSmallFileSize);
  const fs::path folder = fs::path(target->record.files[0].path).parent_path();
  EXPECT_TRUE(fs::exists(folder / kScratchMarker));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(target->close());
  EXPECT_TRUE(target->close());
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(BenchTarget, ADestroyedTargetRemovesItsFolder) {
  const DiskFolder disk;
  {
    auto target = BenchTarget::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    ASSERT_TRUE(target);
    target->open(this_process(0), {16 * kMiB, made_up_work(16, kSmallFileSize), ""}, kNotStopped);
    const BenchTarget moved = std::move(*target);
    EXPECT_FALSE(fs::is_empty(disk.path()));
  }
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(BenchTarget, SpaceIsCountedForAllPathsOfAFileSystemAndFivePercentStayFree) {
  const DiskFolder disk;
  std::vector<BenchTarget> targets;
  for (const char* name : {"a", "b"}) {
    fs::create_directory(disk / name);
    targets.push_back(BenchTarget::inspect({name, disk / name}, SystemRoot{}, kNotStopped).value());
    targets.back().record.size = 100'000'000'000;
    targets.back().record.free = 10'000'000'000;
  }
  targets[1].device += 1;  // as that of another subvolume of btrfs
  EXPECT_TRUE(check_space(targets, 2'500'000'000));
  const auto refused = check_space(targets, 2'600'000'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::NoSpace);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("5.20 GB"), HasSubstr("10.0 GB of 100 GB"), HasSubstr("--size")));
  targets[1].record.read_only_reason = "mounted read-only";
  EXPECT_TRUE(check_space(targets, 5'000'000'000));
}

// A mount that only this call can see. Null if this process may not mount.
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

TEST(BenchTarget, AReadOnlyMountIsReadFromItsExistingFiles) {
  const DiskFolder disk;
  write_text(disk / "shard", std::string(3 << 20, 'x'));
  const auto seen = with_mount(nullptr, disk.path(), MS_BIND | MS_RDONLY, [&]() -> Result<json::value> {
    auto target = BenchTarget::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!target) return target.take_error();
    target->open(this_process(0), {16 * kMiB, made_up_work(16, kSmallFileSize), ""}, kNotStopped);
    json::object seen{{"reason", target->record.read_only_reason}, {"unusable", target->record.unusable}};
    seen["file"] = target->record.files.empty() ? "" : target->record.files[0].path;
    return seen;
  });
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(get_string(seen->as_object(), "reason"), "mounted read-only");
  EXPECT_EQ(get_string(seen->as_object(), "unusable"), "");
  EXPECT_EQ(get_string(seen->as_object(), "file"), fs::canonical(disk / "shard").string());
}

TEST(BenchTarget, AFileSystemThatRefusesDirectIoIsUnusableAndLeftClean) {
  const DiskFolder disk;
  const auto seen = with_mount("ramfs", disk.path(), 0, [&]() -> Result<json::value> {
    auto target = BenchTarget::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!target) return target.take_error();
    target->open(this_process(0), {16 * kMiB, made_up_work(16, kSmallFileSize), ""}, kNotStopped);
    if (auto closed = target->close(); !closed) return closed.take_error();
    return json::object{{"unusable", target->record.unusable}, {"empty", fs::is_empty(disk.path())}};
  });
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process may not mount a ramfs";
  EXPECT_THAT(get_string(seen->as_object(), "unusable").value(), HasSubstr("O_DIRECT"));
  EXPECT_EQ(get_bool(seen->as_object(), "empty"), true);
}

TEST(BenchTarget, AFolderWithoutPermissionIsReadOnlyAndWithoutFilesUnusable) {
  const DiskFolder disk;
  const auto seen = run_apart({"as nobody", Duration(30'000), nullptr}, [&]() -> Result<json::value> {
    if (::chmod(disk.path().c_str(), 0555) != 0) return nullptr;
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return nullptr;
    auto target = BenchTarget::inspect({"x", disk.path()}, SystemRoot{}, kNotStopped);
    if (!target) return target.take_error();
    target->open(this_process(0), {16 * kMiB, made_up_work(16, kSmallFileSize), ""}, kNotStopped);
    return json::object{{"reason", target->record.read_only_reason}, {"unusable", target->record.unusable}};
  });
  if (!seen && seen.error().kind == Errc::Denied) GTEST_SKIP() << "nobody can't reach " << disk.path();
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process can't become nobody";
  EXPECT_EQ(get_string(seen->as_object(), "reason"), "no permission to write");
  EXPECT_THAT(get_string(seen->as_object(), "unusable").value(), HasSubstr("no file of at least 4 KiB"));
}

// The refusal comes before the measurements, and leaves nothing behind.
TEST(CopyWork, QuickRefusesAFolderWhoseFilesAreAllTooLarge) {
  const DiskFolder disk;
  fs::create_directory(disk / "large");
  fs::create_directory(disk / "local");
  write_text(disk / "large/weights", std::string(40 * kMiB, 'x'));
  const auto seen = with_mount(nullptr, disk / "large", MS_BIND | MS_RDONLY, [&]() -> Result<json::value> {
    BenchOptions options;
    options.paths = {{"large", disk / "large"}, {"local", disk / "local"}};
    options.size = 32 * kMiB;
    unsigned measured = 0;
    const auto count = [&](const Progress& now) { measured += now.cell > 0 ? 1 : 0; };
    const auto record = run(quick(options), count, kNotStopped);
    const Error error = record ? Error{} : record.error();
    return json::object{{"said", error.message()},
                        {"is_refusal", error.kind == Errc::Invalid},
                        {"measured", measured},
                        {"empty", fs::is_empty(disk / "local")}};
  });
  ASSERT_TRUE(seen) << seen.error().message();
  if (seen->is_null()) GTEST_SKIP() << "this process may not mount";
  const std::string said = get_string(seen->as_object(), "said").value_or("");
  EXPECT_EQ(get_bool(seen->as_object(), "is_refusal"), true) << said;
  EXPECT_THAT(said, HasSubstr("--quick can't decide about large: its files have 41.9 MB and more"));
  EXPECT_THAT(said, HasSubstr("--size 1GiB"));
  EXPECT_EQ(get_int(seen->as_object(), "measured"), 0) << said;
  EXPECT_EQ(get_bool(seen->as_object(), "empty"), true);
}

TEST(CopyWork, AFolderOfLargeFilesIsCopiedByItsSmallestIfThatIsNotTooLarge) {
  const DiskFolder disk;
  const StopFlag go_on = false;
  auto target = BenchTarget::inspect({"large", disk.path()}, {}, go_on);
  ASSERT_TRUE(target) << target.error().message();
  BenchOptions options;
  options.size = kGiB;
  target->record.files = {{"/a", 3 * kGiB}, {"/b", kGiB}};
  const CopyWork whole = copy_work(*target, options, 1);
  EXPECT_EQ(whole.source, "/b");
  options.rate_limit = 5'000'000;
  EXPECT_GT(copy_deadline(whole, options), std::chrono::seconds(kGiB / 5'000'000));
  EXPECT_EQ(copy_deadline({"/c", {}, kGiB / 4}, options), cell_deadline(options));
  target->record.files = {{"/a", 3 * kGiB}, {"/b", kGiB + 1}};
  EXPECT_EQ(copy_work(*target, options, 1).source, "");
  target->record.files = {{"/a", kGiB}, {"/b", kMiB}};
  EXPECT_EQ(copy_work(*target, options, 1).source, "/b") << "not one that is larger than needed";
}

}  // namespace
}  // namespace spark::bench
