// A source on NFS: its client answers fstat from attributes that it remembers, unless it is told to ask.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

#include "copy_fixture.hpp"
#include "staging/copy_with.hpp"

namespace {

// What an NFS client remembers of files below the folder, while a test has one.
struct AttributeCache {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, struct stat> known;  // by device and inode
};
AttributeCache* remembers = nullptr;

}  // namespace

// Take the place of the C library's in this program.
extern "C" int fstat(int fd, struct stat* info) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH));
  if (failed != 0 || remembers == nullptr || !S_ISREG(info->st_mode)) return failed;
  const std::scoped_lock lock(remembers->mutex);
  *info = remembers->known.try_emplace({info->st_dev, info->st_ino}, *info).first->second;
  return 0;
}

extern "C" int statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_statx, folder, path, flags, mask, info));
  if (failed != 0 || remembers == nullptr) return failed;
  struct stat now {};
  if (::syscall(SYS_newfstatat, folder, path, &now, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0)
    return 0;
  const std::scoped_lock lock(remembers->mutex);
  const auto [known, is_new] = remembers->known.try_emplace({now.st_dev, now.st_ino}, now);
  if ((flags & AT_STATX_FORCE_SYNC) != 0) known->second = now;
  return 0;
}

namespace spark::staging {
namespace {

using namespace test;

class CachedAttributesTest : public CopyTest {
 protected:
  CachedAttributesTest() { remembers = &cache_; }
  ~CachedAttributesTest() override { remembers = nullptr; }

  // Copies; another host changes the file once while it is read.
  Result<CopyReport> copy_while_it_changes(Bytes size) {
    write_text(source_ / "f", noise(size, 1));
    bool changed = false;
    CopyHooks hooks;
    hooks.before_read = [&](const std::string&, Bytes) {
      if (!std::exchange(changed, true)) write_text(source_ / "f", noise(size, 2));
    };
    return copy_with(hooks, source_, copy_, options_, kQuiet, stop_);
  }

 private:
  AttributeCache cache_;
};

TEST_F(CachedAttributesTest, AChangeThatTheClientHasNotHeardOfIsSeenAfterReadingALargeFile) {
  options_.threads = 1;
  ASSERT_OK(copy_while_it_changes(20 * kMiB));
  EXPECT_EQ(read_text(copy_ / "f"), read_text(source_ / "f"));
  ASSERT_OK(copy_now());
  EXPECT_TRUE(copy_now()->unchanged) << "the manifest has the times of what was copied";
}

TEST_F(CachedAttributesTest, AndAfterReadingASmallOne) {
  ASSERT_OK(copy_while_it_changes(2000));
  EXPECT_EQ(read_text(copy_ / "f"), read_text(source_ / "f"));
  ASSERT_OK(copy_now());
  EXPECT_TRUE(copy_now()->unchanged) << "the manifest has the times of what was copied";
}

}  // namespace
}  // namespace spark::staging
