#include "bench/files/cached_data.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/skip.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

TEST(CachedData, IsThePartInThePageCache) {
  const DiskFolder disk;
  fs::create_directories(disk / "set/sub");
  write_text(disk / "set/a", std::string(4 * kMiB, 'x'));
  write_text(disk / "set/sub/b", std::string(12 * kMiB, 'x'));
  fs::create_symlink("b", disk / "set/sub/link");
  const std::vector<std::string> set{disk / "set"};
  const auto all = cached_data(set);
  if (!all) SPARK_SKIP("the file system of the temporary folder does not tell what is cached");
  EXPECT_EQ(*all, 16 * kMiB);
  const UniqueFd fd(::open((disk / "set/sub/b").c_str(), O_RDWR));
  ASSERT_EQ(::fdatasync(fd.get()), 0);
  ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_NEAR(static_cast<double>(cached_data(set).value_or(0)), 4.0 * kMiB, 1.0 * kMiB);
  EXPECT_FALSE(cached_data({disk / "none"}));
}

// As overlayfs, tmpfs and NFS.
TEST(CachedData, IsNotKnownWhereTheFileSystemDoesNotTell) {
  const DiskFolder disk;
  fs::create_directories(disk / "set");
  write_text(disk / "set/a", std::string(4 * kMiB, 'x'));
  const std::vector<std::string> set{disk / "set"};
  EXPECT_FALSE(cached_data(set, [](int, Bytes) { return std::nullopt; }));
  EXPECT_EQ(cached_data(set, [](int, Bytes) { return std::optional(false); }), 0u) << "known, and none";
  EXPECT_EQ(cached_data(set, [](int, Bytes) { return std::optional(true); }), 4 * kMiB);
  const auto every = [](unsigned nth) {
    return [nth, asked = 0u](int, Bytes) mutable {
      return ++asked % nth == 0 ? std::optional(true) : std::nullopt;
    };
  };
  EXPECT_FALSE(cached_data(set, every(10))) << "a tenth of the pages is too few";
  EXPECT_EQ(cached_data(set, every(2)), 4 * kMiB);
}

}  // namespace
}  // namespace spark::bench
