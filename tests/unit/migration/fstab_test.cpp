#include "migration/survey/fstab.hpp"

#include <gtest/gtest.h>

#include "migration/survey/words.hpp"

namespace spark::host {
namespace {

TEST(Fstab, HasALineForEachMount) {
  const auto lines = parse_fstab(
      "# a comment\n"
      "UUID=1234 / ext4 defaults 0 1\n"
      "\n"
      "/dev/nvme1n1\t/mnt/with\\040space  ext4  defaults,noatime,_netdev 0 2\n"
      "192.168.0.98:/data /mnt/nas nfs4\n"
      "broken\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].number, 4);
  EXPECT_EQ(lines[1].source, "/dev/nvme1n1");
  EXPECT_EQ(lines[1].mount, "/mnt/with space");
  EXPECT_EQ(lines[1].options, "defaults,noatime,_netdev");
  EXPECT_EQ(lines[1].pass, 2);
  EXPECT_TRUE(lines[2].is_nfs());
  EXPECT_EQ(lines[2].options, "");
}

TEST(Fstab, RecognizesKernelDeviceNames) {
  EXPECT_TRUE(is_kernel_name("/dev/nvme1n1"));
  EXPECT_TRUE(is_kernel_name("/dev/nvme10n2p3"));
  EXPECT_FALSE(is_kernel_name("/dev/sda1"));
  EXPECT_FALSE(is_kernel_name("/dev/disk/by-uuid/1234"));
  EXPECT_FALSE(is_kernel_name("UUID=1234"));
  EXPECT_FALSE(is_kernel_name("/dev/nvme1"));
}

TEST(ShellWords, AreSplitLikeAShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("a  'b c' \"d \\\" e\" f\\ g ''"), (Words{"a", "b c", "d \" e", "f g", ""}));
  EXPECT_EQ(words_of("an open 'quote here"), (Words{"an", "open", "quote here"}));
  EXPECT_EQ(words_of(" \t\n"), Words{});
}

TEST(NameFor, GivesNoLongerNameThanAConfigurationHas) {
  std::set<std::string> taken;
  for (int i = 0; i < 3; ++i) EXPECT_LE(name_for("/mnt/" + std::string(200, 'x'), taken).size(), 64u);
}

TEST(NameFor, GivesUniqueNamesValidInAConfiguration) {
  std::set<std::string> taken;
  EXPECT_EQ(name_for("nqn.2024-01.com.example:tank/Image Net", taken), "image-net");
  EXPECT_EQ(name_for("image_net", taken), "image-net-2");
  EXPECT_EQ(name_for("::", taken), "volume");
}

}  // namespace
}  // namespace spark::host
