// A copy leaves nothing in the page cache.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <vector>

#include "base/file.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

struct Pages {
  std::size_t all = 0, resident = 0;
};

void count_pages(const std::filesystem::path& file, Pages& pages) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const std::size_t size = std::filesystem::file_size(file);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(map, MAP_FAILED) << file;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> states((size + page - 1) / page);
  ASSERT_EQ(::mincore(map, size, states.data()), 0);
  for (const unsigned char state : states) pages.resident += state & 1;
  pages.all += states.size();
  ::munmap(map, size);
}

Pages pages_below(const std::filesystem::path& folder) {
  Pages pages;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) count_pages(entry.path(), pages);
  }
  return pages;
}

void drop_below(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    ::fsync(fd.get());
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

class PageCacheTest : public CopyTest {
 protected:
  void expect_nothing_left() {
    struct statfs info {};
    ASSERT_EQ(::statfs(folder_.path().c_str(), &info), 0);
    if (info.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a tmpfs is the page cache; set TMPDIR";
    drop_below(source_);
    ASSERT_EQ(pages_below(source_).resident, 0u);
    ASSERT_OK(copy_now());
    const Pages source = pages_below(source_), copy = pages_below(copy_);
    EXPECT_EQ(source.all, copy.all);
    EXPECT_LE(source.resident, source.all / 100);
    EXPECT_LE(copy.resident, copy.all / 100);
  }
};

TEST_F(PageCacheTest, IsLeftAsItWasByLargeFiles) {
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    options_.io = io;
    write_text(source_ / "large", noise(50'000'000, static_cast<std::uint64_t>(io)));
    expect_nothing_left();
  }
}

TEST_F(PageCacheTest, IsLeftAsItWasBySmallFiles) {
  for (int i = 0; i < 500; ++i)
    write_text(source_ / std::to_string(i % 7) / std::to_string(i), noise(20'000, i));
  expect_nothing_left();
}

}  // namespace
}  // namespace spark::staging
