#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "daemon/mounts/users.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

constexpr char kTable[] =
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
    "40 27 259:3 / /mnt/rosa ro,noatime shared:7 master:2 - ext4 /dev/nvme3n1 ro,norecovery\n"
    "41 27 0:55 / /mnt/with\\040space\\011tab rw - nfs4 10.0.0.1:/data\\040x rw,vers=4.2,addr=10.0.0.1\n"
    "42 41 0:56 / /mnt/with\\040space\\011tab/below rw - tmpfs tmpfs rw\n";

TEST(MountUsers, AreLimitedToEightAndMountsBelowComeFirst) {
  const auto table = parse_mount_table(kTable);
  const Mount& nfs = table[2];
  std::vector<User> users(12, {17, "bash", "working folder"});
  const std::string words = describe_users(users, table, nfs);
  EXPECT_THAT(words, testing::StartsWith(
                         "the mount at /mnt/with space\\x09tab/below, bash (pid 17, working folder)"));
  EXPECT_THAT(words, HasSubstr(" and 5 more"));
  EXPECT_THAT(describe_users({}, {}, nfs), HasSubstr("no process that can be seen"));
}

TEST(MountUsers, AreFoundInProcWithoutAccessingTheMount) {
  const test::TempFolder root;
  const auto make_process = [&](const std::string& pid, const std::string& command) {
    std::filesystem::create_directories(root / ("proc/" + pid + "/fdinfo"));
    std::ofstream(root / ("proc/" + pid + "/comm")) << command << "\n";
  };
  make_process("11", "reader");
  std::ofstream(root / "proc/11/fdinfo/5") << "pos:\t0\nflags:\t02\nmnt_id:\t40\nino:\t9\n";
  make_process("12", "shell");
  std::filesystem::create_symlink("/mnt/rosa/sets", root / "proc/12/cwd");
  make_process("13", "neighbour");
  std::filesystem::create_symlink("/mnt/rosa-2", root / "proc/13/cwd");
  std::ofstream(root / "proc/13/fdinfo/5") << "mnt_id:\t401\n";
  make_process("14", "mapper");
  std::ofstream(root / "proc/14/maps") << "7f00-7f01 r--p 0 103:03 12 /mnt/rosa/model.bin\n";
  const auto users = users_of({root.path()}, parse_mount_table(kTable)[1]);
  std::vector<std::string> found;
  for (const User& user : users) found.push_back(user.command + ": " + user.how);
  EXPECT_THAT(found, testing::UnorderedElementsAre("reader: open file", "shell: working folder",
                                                   "mapper: mapped file"));
}

TEST(MountUsers, AreFoundInOtherMountNamespacesAndInTheKernel) {
  const test::TempFolder root;
  const auto make_process = [&](const std::string& pid, const std::string& space) {
    std::filesystem::create_directories(root / ("proc/" + pid + "/ns"));
    std::filesystem::create_directories(root / ("proc/" + pid + "/fdinfo"));
    std::ofstream(root / ("proc/" + pid + "/comm")) << "service\n";
    std::filesystem::create_symlink("mnt:[" + space + "]", root / ("proc/" + pid + "/ns/mnt"));
  };
  make_process("self", "1");
  const Mount mount = parse_mount_table("40 1 259:3 / /mnt/data rw - ext4 /dev/nvme1n1 rw\n").at(0);
  const std::string theirs =
      "70 1 0:9 / /tmp rw - tmpfs tmp rw\n71 1 259:3 / /mnt/data rw - ext4 /dev/nvme1n1 rw\n";
  for (const std::string pid : {"21", "22"}) {
    make_process(pid, "2");
    std::ofstream(root / ("proc/" + pid + "/mountinfo")) << theirs;
  }
  std::ofstream(root / "proc/21/fdinfo/5") << "mnt_id:\t71\n";
  std::ofstream(root / "proc/22/fdinfo/5") << "mnt_id:\t40\n";  // the number of a mount of their own
  EXPECT_EQ(describe_users(users_of({root.path()}, mount), {}, mount),
            "service (pid 21, open file in another mount namespace)");
  std::filesystem::remove_all(root / "proc/21");
  std::filesystem::create_directories(root / "proc/fs/nfsd");
  std::filesystem::create_directories(root / "sys/block/loop0/loop");
  std::ofstream(root / "proc/fs/nfsd/exports")
      << "# Version 1.1\n/mnt/data/sets\t10.0.0.0/8(ro)\n/mnt/b\t*(ro)\n";
  std::ofstream(root / "proc/swaps") << "Filename Type\n/mnt/data/swap   file 1024\n";
  std::ofstream(root / "sys/block/loop0/loop/backing_file") << "/mnt/data/image\n";
  EXPECT_EQ(
      describe_users(users_of({root.path()}, mount), {}, mount),
      "the NFS export /mnt/data/sets, the swap file /mnt/data/swap, the loop device of /mnt/data/image");
}

TEST(MountUsers, OfADetachedMountAreFoundByTheDeviceOfTheirFiles) {
  const test::TempFolder root;
  struct stat info {};
  ASSERT_EQ(::stat(root.path().c_str(), &info), 0);
  const auto make_process = [&](const std::string& pid, const std::string& command) {
    std::filesystem::create_directories(root / ("proc/" + pid + "/fd"));
    std::ofstream(root / ("proc/" + pid + "/comm")) << command << "\n";
  };
  make_process("31", "python3");
  std::ofstream(root / "file") << "x";
  std::filesystem::create_symlink(root / "file", root / "proc/31/fd/3");
  make_process("32", "shell");
  std::filesystem::create_symlink(root.path(), root / "proc/32/cwd");
  make_process("33", "neighbour");
  std::filesystem::create_symlink("/proc", root / "proc/33/cwd");
  std::filesystem::create_symlink("/proc/version", root / "proc/33/fd/3");
  const auto users = users_of_detached({root.path()}, info.st_dev);
  std::vector<std::string> found;
  for (const User& user : users) found.push_back(user.command + ": " + user.how);
  EXPECT_THAT(found, testing::UnorderedElementsAre("python3: open file on a mount that was detached",
                                                   "shell: working folder on a mount that was detached"));
}

}  // namespace
}  // namespace spark::mounts
