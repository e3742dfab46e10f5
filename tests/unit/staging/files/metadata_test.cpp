#include "staging/files/metadata.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

// A pipe takes no ACL, like vfat and many file systems in user space.
TEST(Metadata, AFileThatLosesItsAclIsOpenToNobodyElse) {
  // Version 2, then {tag, permissions, id}: the owner, user 1000 (r), the group (nothing), the mask (r),
  // others (nothing): mode 0640.
  unsigned char acl[] = {2, 0,   0,   0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,    4,
                         0, 232, 3,   0,   0,   4,   0,    0, 0,   255, 255, 255, 255, 0x10, 0,
                         4, 0,   255, 255, 255, 255, 0x20, 0, 0,   0,   255, 255, 255, 255};
  unsigned char& of_user = acl[14];
  unsigned char& of_group = acl[22];
  unsigned char& of_others = acl[38];
  const TempFolder folder;
  write_text(folder / "f", "x");
  const UniqueFd source(::open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC));
  const auto mode_of_copy = [&]() -> mode_t {
    int ends[2];
    struct stat info {};
    EXPECT_EQ(::fsetxattr(source.get(), "system.posix_acl_access", acl, sizeof acl, 0), 0);
    EXPECT_EQ(::fstat(source.get(), &info), 0);
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd copy(ends[0]), other(ends[1]);
    Entry entry;
    entry.type = EntryType::File;
    entry.mode = info.st_mode & 07777;
    entry.uid = info.st_uid;
    entry.gid = info.st_gid;
    const auto kept = put_metadata(copy.get(), source.get(), entry, {"copy", "source"});
    EXPECT_TRUE(kept) << kept.error().message();
    EXPECT_TRUE(!kept || *kept == Kept::WithoutAttributes);
    EXPECT_EQ(::fstat(copy.get(), &info), 0);
    return info.st_mode & 07777;
  };
  EXPECT_EQ(mode_of_copy(), 0600U);
  of_group = 4;
  EXPECT_EQ(mode_of_copy(), 0640U);
  of_user = 0, of_others = 4;  // this user is in the group, perhaps
  EXPECT_EQ(mode_of_copy(), 0600U);
}

}  // namespace
}  // namespace spark::staging
