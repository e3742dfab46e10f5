#include "staging/files/space.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.hpp"
#include "staging/manifest/file_system_type.hpp"
#include "staging/manifest/source_identity.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

std::string name(const std::string& type, const std::string& source, const std::string& identity = "") {
  return file_system_named(type, source, [&] { return identity; });
}

// The mount point is empty or has a stray file: it is a folder of the disk below.
TEST(FileSystemName, OfARemoteFileSystemIsItsSource) {
  const std::string nfs = name("nfs4", "server:/data"), fuse = name("fuse.sshfs", "host:/data");
  const std::string disk = name("ext4", "/dev/sda1", "uuid:1");
  for (const std::string& there : {nfs, fuse}) {
    EXPECT_TRUE(is_other_file_system(there, disk));
    EXPECT_FALSE(is_other_file_system(there, there));
  }
  EXPECT_TRUE(is_other_file_system(nfs, name("nfs4", "server:/other")));
  EXPECT_FALSE(is_other_file_system(nfs, name("nfs", "server:/data"))) << "another version of the protocol";
}

TEST(FileSystemType, OfANetworkIsThatOfAClusterToo) {
  for (const char* type : {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "virtiofs", "ceph", "fuse.sshfs"})
    EXPECT_TRUE(is_of_network(type)) << type;
  for (const char* type : {"ext4", "xfs", "btrfs", "fuseblk", "tmpfs"})
    EXPECT_FALSE(is_of_network(type)) << type;
}

// mount.ceph writes the addresses of the monitors, in no fixed order.
TEST(FileSystemName, OfCephIsItsClusters) {
  const std::string one = name("ceph", "10.0.0.1,10.0.0.2:/", "fsid:1");
  EXPECT_FALSE(is_other_file_system(one, name("ceph", "10.0.0.2,10.0.0.1:/", "fsid:1")));
  EXPECT_TRUE(is_other_file_system(one, name("ceph", "10.0.0.1,10.0.0.2:/", "fsid:2")));
}

TEST(FileSystemName, WithoutAnIdentityIsItsType) {
  EXPECT_FALSE(is_other_file_system(name("xfs", "/dev/sda1"), name("xfs", "/dev/sdb1", "uuid:1")));
  EXPECT_FALSE(is_other_file_system(name("xfs", "/dev/sda1", "fsid:1"), name("xfs", "/dev/sda1", "uuid:1")));
  EXPECT_TRUE(is_other_file_system(name("xfs", "/dev/sda1", "uuid:2"), name("xfs", "/dev/sda1", "uuid:1")));
  EXPECT_TRUE(is_other_file_system(name("xfs", "/dev/sda1"), name("ext4", "/dev/sda1", "uuid:1")));
  EXPECT_FALSE(is_other_file_system("", name("ext4", "/dev/sda1", "uuid:1")));
}

// After each boot it is another one.
TEST(FileSystemName, OfATmpfsOutlivesABoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  const TempFolder folder;
  const SmallTmpfs one(folder / "one", "size=1m"), other(folder / "other", "size=1m");
  const auto name_of = [](const std::filesystem::path& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return file_system_of(fd.get());
  };
  EXPECT_TRUE(name_of(folder / "one").starts_with("tmpfs from:")) << name_of(folder / "one");
  EXPECT_FALSE(is_other_file_system(name_of(folder / "one"), name_of(folder / "other")));
  EXPECT_NE(name_of(folder.path()), "");
}

}  // namespace
}  // namespace spark::staging
