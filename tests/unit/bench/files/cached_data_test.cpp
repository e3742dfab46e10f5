#include "bench/files/cached_data.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

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
  ASSERT_TRUE(all) << "this file system does not tell";
  EXPECT_EQ(*all, 16 * kMiB);
  const UniqueFd fd(::open((disk / "set/sub/b").c_str(), O_RDWR));
  ASSERT_EQ(::fdatasync(fd.get()), 0);
  ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_NEAR(static_cast<double>(cached_data(set).value_or(0)), 4.0 * kMiB, 0.1 * kMiB);
  EXPECT_FALSE(cached_data({disk / "none"}));
}

}  // namespace
}  // namespace spark::bench
