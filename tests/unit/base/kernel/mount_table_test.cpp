#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>

#include "base/kernel/mount_table.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;

constexpr char kTable[] =
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
    "40 27 259:3 / /mnt/rosa ro,noatime shared:7 master:2 - ext4 /dev/nvme3n1 ro,norecovery\n"
    "41 27 0:55 / /mnt/with\\040space\\011tab rw - nfs4 10.0.0.1:/data\\040x rw,vers=4.2,addr=10.0.0.1\n"
    "42 41 0:56 / /mnt/with\\040space\\011tab/below rw - tmpfs tmpfs rw\n"
    "44 43 259:5 / /mnt/stack rw - xfs /dev/nvme5n1 rw\n"
    "43 27 259:4 / /mnt/stack rw - xfs /dev/nvme4n1 rw,shutdown\n"
    "this is no line of the table\n"
    "99 27 0:1 / /mnt/cut rw - tmpfs tmpfs\n";

TEST(MountTable, LinesAreParsedWithEscapesAndOptionalFields) {
  const auto table = parse_mount_table(kTable);
  ASSERT_EQ(table.size(), 6u);
  EXPECT_EQ(table[1].source, "/dev/nvme3n1");
  EXPECT_EQ(table[1].type, "ext4");
  EXPECT_EQ(table[1].options, "ro,noatime");
  EXPECT_EQ(table[1].super_options, "ro,norecovery");
  EXPECT_EQ(table[1].device_number, makedev(259, 3));
  EXPECT_EQ(table[1].parent_id, 27);
  EXPECT_EQ(table[2].target, "/mnt/with space\ttab");
  EXPECT_EQ(table[2].source, "10.0.0.1:/data x");
}

TEST(MountTable, TheTopmostOfTwoStackedMountsIsFoundInAnyOrder) {
  const auto table = parse_mount_table(kTable);
  ASSERT_NE(mounted_at(table, "/mnt/stack"), nullptr);
  EXPECT_EQ(mounted_at(table, "/mnt/stack")->source, "/dev/nvme5n1");
  EXPECT_EQ(mounted_at(table, "/mnt/rosa")->source, "/dev/nvme3n1");
  EXPECT_EQ(mounted_at(table, "/mnt"), nullptr);
}

TEST(MountTable, TheTopmostOfThreeStackedMountsIsFoundInEveryOrder) {
  std::vector<std::string> lines = {"50 27 0:50 / /mnt/s rw - tmpfs bottom rw",
                                    "51 50 0:51 / /mnt/s rw - tmpfs middle rw",
                                    "52 51 0:52 / /mnt/s rw - tmpfs top rw"};
  do {
    const auto table = parse_mount_table(lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n");
    EXPECT_EQ(mounted_at(table, "/mnt/s")->source, "top") << lines[0];
  } while (std::ranges::next_permutation(lines).found);
}

TEST(MountTable, AMountOverAParentFolderHidesTheMountsBelowIt) {
  const auto table = parse_mount_table(
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "50 27 259:1 / /mnt/data ro - ext4 /dev/nvme1n1 ro\n"
      "51 27 0:50 / /mnt rw - tmpfs none rw\n"
      "52 27 0:51 / /mnt/database rw - tmpfs other rw\n"
      "60 27 0:60 / /srv rw - tmpfs srv rw\n"
      "61 60 259:2 / /srv/data ro - ext4 /dev/nvme2n1 ro\n");
  EXPECT_EQ(covering(table, table[1]), &table[2]);
  EXPECT_EQ(mounted_at(table, "/mnt/data"), nullptr);
  EXPECT_EQ(stack_at(table, "/mnt/data").size(), 1U);
  EXPECT_EQ(covering(table, table[5]), nullptr);
  EXPECT_EQ(mounted_at(table, "/srv/data"), &table[5]);
  EXPECT_EQ(carrier_of(table, "/mnt/data/a"), &table[2]);
}

TEST(MountTable, AMountOnTheRootHidesNothing) {
  const auto table = parse_mount_table(
      "1 1 0:2 / / rw - rootfs rootfs rw\n27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "50 1 259:1 / /mnt/data ro - ext4 /dev/nvme1n1 ro\n");
  EXPECT_EQ(covering(table, table[2]), nullptr);
  EXPECT_EQ(mounted_at(table, "/mnt/data"), &table[2]);
}

TEST(MountTable, ABindMountOfAFolderHasThatFolderAsRoot) {
  const auto table = parse_mount_table("50 27 259:1 /a\\040b /mnt/data ro - ext4 /dev/nvme1n1 ro\n");
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].root, "/a b");
}

TEST(MountTable, AFolderBelongsToTheNearestMountAboveIt) {
  const auto table = parse_mount_table(kTable);
  EXPECT_EQ(carrier_of(table, "/mnt/rosa/a/b/")->source, "/dev/nvme3n1");
  EXPECT_EQ(carrier_of(table, "/mnt/rosa")->source, "/dev/nvme3n1");
  EXPECT_EQ(carrier_of(table, "/mnt/stack/a")->source, "/dev/nvme5n1");
  EXPECT_EQ(carrier_of(table, "/mnt/other")->source, "/dev/vda");
  EXPECT_EQ(carrier_of(table, "relative"), nullptr);
  EXPECT_EQ(carrier_of({}, "/mnt"), nullptr);
}

TEST(MountTable, ALineWithAnEmptySourceIsParsed) {
  const auto table = parse_mount_table("50 27 0:60 / /mnt/e rw - tmpfs  rw,size=4k\n");
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table[0].source, "");
  EXPECT_EQ(table[0].super_options, "rw,size=4k");
}

TEST(MountTable, OptionsMatchOnlyByTheirWholeName) {
  EXPECT_TRUE(has_option("rw,noatime,vers=4.2", "vers"));
  EXPECT_FALSE(has_option("rw,errors=remount-ro", "ro"));
  EXPECT_FALSE(has_option("", "ro"));
}

TEST(MountTable, IsReadBelowAGivenRoot) {
  const test::TempFolder root;
  std::filesystem::create_directories(root / "proc/self");
  std::ofstream(root / "proc/self/mountinfo") << kTable;
  EXPECT_EQ(read_mount_table({root.path()})->size(), 6u);
}

TEST(MountTable, AnOversizedTableIsAnError) {
  const test::TempFolder root;
  std::filesystem::create_directories(root / "proc/self");
  {
    std::ofstream file(root / "proc/self/mountinfo");
    for (int i = 0; i <= 100'000; ++i) file << i + 2 << " 1 0:1 / /mnt/x rw - tmpfs t rw\n";
  }
  const auto table = read_mount_table({root.path()});
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message(), HasSubstr("more than 100,000"));
}

TEST(MountTable, ThisHostsTableHasARootFileSystem) {
  const auto table = read_mount_table({});
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_NE(mounted_at(*table, "/"), nullptr);
}

TEST(MountTable, AStackIsListedFromTheTopInAnyOrderOfTheTable) {
  const auto table = parse_mount_table(
      "90 80 0:9 / /mnt/a rw - tmpfs top rw\n70 1 259:1 / /mnt/a rw - ext4 /dev/nvme1n1 rw\n"
      "80 70 0:8 / /mnt/a rw - tmpfs middle rw\n75 1 259:2 / /mnt/b rw - ext4 /dev/nvme2n1 rw\n");
  std::vector<std::string> sources;
  for (const Mount* mount : stack_at(table, "/mnt/a/")) sources.push_back(mount->source);
  EXPECT_THAT(sources, testing::ElementsAre("top", "middle", "/dev/nvme1n1"));
  EXPECT_EQ(mounted_at(table, "/mnt/a")->source, "top");
  EXPECT_TRUE(stack_at(table, "/mnt/c").empty());
}

TEST(MountTable, AMountIsItsNumbersAndItsWholeFileSystem) {
  Mount mount;
  mount.id = 30;
  mount.device_number = 7;
  EXPECT_TRUE(is_mount(mount, {30, 7}));
  EXPECT_TRUE(is_mount(mount, {0, 7}));
  EXPECT_FALSE(is_mount(mount, {31, 7}));
  EXPECT_FALSE(is_mount(mount, {30, 8}));
  mount.root = "/folder";
  EXPECT_FALSE(is_mount(mount, {30, 7})) << "a bind mount of a folder";
}

}  // namespace
}  // namespace spark::mounts
