// A source on NFS: its client answers fstat from cached attributes, unless asked to refresh them.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

#include "staging/copy/copy_with.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"
#include "tests/unit/staging/file_attributes.hpp"

namespace spark::staging {
namespace {

using namespace test;

class CachedAttributesTest : public CopyTest {
 protected:
  CachedAttributesTest() {
    file_attributes().on_fstat = [this](struct stat& info) {
      if (S_ISREG(info.st_mode)) info = remembered(info, false);
    };
    file_attributes().on_statx = [this](int folder, const char* path, int flags, struct statx&) {
      struct stat now {};
      if (::syscall(SYS_newfstatat, folder, path, &now, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) == 0)
        remembered(now, (flags & AT_STATX_FORCE_SYNC) != 0);
    };
  }
  ~CachedAttributesTest() override { file_attributes() = {}; }

  // Copies, while another host changes the file once during the read.
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
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, struct stat> known_;  // by device and inode

  // The attributes that an NFS client has cached; `asks` refreshes them from the server.
  struct stat remembered(const struct stat& now, bool asks) {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.try_emplace({now.st_dev, now.st_ino}, now).first;
    if (asks) known->second = now;
    return known->second;
  }
};

TEST_F(CachedAttributesTest, AChangeHiddenByCachedAttributesIsFoundInALargeFile) {
  options_.threads = 1;
  ASSERT_OK(copy_while_it_changes(20 * kMiB));
  EXPECT_EQ(read_text(copy_ / "f"), read_text(source_ / "f"));
  ASSERT_OK(copy_now());
  EXPECT_TRUE(copy_now()->unchanged) << "the manifest has the times of what was copied";
}

TEST_F(CachedAttributesTest, AChangeHiddenByCachedAttributesIsFoundInASmallFile) {
  ASSERT_OK(copy_while_it_changes(2000));
  EXPECT_EQ(read_text(copy_ / "f"), read_text(source_ / "f"));
  ASSERT_OK(copy_now());
  EXPECT_TRUE(copy_now()->unchanged) << "the manifest has the times of what was copied";
}

}  // namespace
}  // namespace spark::staging
