#include "staging/files/io/direct_io.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

TEST(DirectIo, AnUncachedWriteIsCompleteOrReportedAsUnsupported) {
  const test::TempFolder folder;
  const UniqueFd fd(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd);
  constexpr std::array<std::byte, 5> kBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                            std::byte{5}};
  const ssize_t wrote = write_uncached(fd.get(), kBytes.data(), kBytes.size(), 3);
  if (wrote < 0) {
    EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
    return;
  }
  ASSERT_EQ(wrote, 5);
  std::array<std::byte, 8> seen{};
  ASSERT_EQ(::pread(fd.get(), seen.data(), seen.size(), 0), 8);
  EXPECT_EQ(seen[2], std::byte{0});
  EXPECT_TRUE(std::equal(kBytes.begin(), kBytes.end(), seen.begin() + 3));
}

}  // namespace
}  // namespace spark::staging
