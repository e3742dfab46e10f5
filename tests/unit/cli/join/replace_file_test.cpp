#include "cli/join/replace_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/file.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::cli {
namespace {

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(ReplaceFile, KeepsOwnerModeAndAcl) {
  const spark::test::TempFolder folder;
  const auto file = folder / "f";
  std::ofstream(file) << "old";
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown(file.c_str(), 1234, 2345), 0);
  }
  // Version 2; owner rw-, user 4321 r--, group r--, mask r--, others ---; as acl(5) and the kernel's header
  // have it.
  const unsigned char acl[] = {2, 0,   0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  4,
                               0, 225, 16,  0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16, 0,
                               4, 0,   255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  const char* name = "system.posix_acl_access";
  const bool has_acl = ::setxattr(file.c_str(), name, acl, sizeof acl, 0) == 0;
  ASSERT_TRUE(replace_file(file, "new"));
  EXPECT_EQ(read_file(file).value(), "new");
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  if (is_root) {
    EXPECT_EQ(std::pair(info.st_uid, info.st_gid), std::pair(uid_t{1234}, gid_t{2345}));
  }
  char kept[256];
  const ssize_t bytes = ::getxattr(file.c_str(), name, kept, sizeof kept);
  if (has_acl) {
    EXPECT_EQ(std::string(kept, kept + std::max<ssize_t>(bytes, 0)), std::string(acl, acl + sizeof acl));
  }
  EXPECT_EQ(entries_in(folder.path()), 1u);
  EXPECT_EQ(replace_file(folder / "none", "x").error().kind, Errc::NotFound);
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

}  // namespace
}  // namespace spark::cli
