#include "csi/mounts.hpp"

#include <unistd.h>

#include "tests/support/skip.hpp"
#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

// A root with one more mount in its mountinfo, at FOLDER/NAME.
class MountsTest : public testing::Test {
 protected:
  void mounted(const std::string& name_in_mountinfo, const std::string& options) {
    // Each on top of the one before, as the kernel numbers them.
    lines_ += std::to_string(next_) + " " + std::to_string(next_ - 1) + " 8:1 /data/imagenet/1 " +
              folder_.path.native() + "/" + name_in_mountinfo + " " + options +
              " shared:1 - ext4 /dev/sda1 rw\n";
    folder_.write("proc/self/mountinfo", lines_);
    ++next_;
  }
  Place look(const std::string& name) {
    KernelMounter mounter(SystemRoot{folder_.path});
    const auto place = mounter.look_at(folder_.path / name);
    EXPECT_TRUE(place) << place.error().message();
    return place.value_or(Place::Something);
  }
  TemporaryFolder folder_;
  int next_ = 36;
  std::string lines_ = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\nshort\n";
};

TEST_F(MountsTest, AMountWithAllOurOptionsIsACopy) {
  mounted("mount", "ro,nosuid,nodev,relatime");
  EXPECT_EQ(look("mount"), Place::Copy);
  EXPECT_EQ(look("other"), Place::Empty);
}

TEST_F(MountsTest, AWritableMountIsAnOutputOrForeign) {
  mounted("output", "rw,nosuid,nodev");
  mounted("other", "rw,relatime");
  EXPECT_EQ(look("output"), Place::Output);
  EXPECT_EQ(look("other"), Place::Something);
}

TEST_F(MountsTest, FoldersAreComparedByIdentityNotPath) {
  KernelMounter mounter;
  std::filesystem::create_directories(folder_.path / "a");
  std::filesystem::create_directories(folder_.path / "b");
  EXPECT_TRUE(mounter.is_same(folder_.path / "a", folder_.path / "b/../a"));
  EXPECT_FALSE(mounter.is_same(folder_.path / "a", folder_.path / "b"));
  EXPECT_FALSE(mounter.is_same(folder_.path / "gone", folder_.path / "gone"));
}

TEST_F(MountsTest, TheTopmostOfStackedMountsCounts) {
  mounted("mount", "ro,nosuid,nodev");
  mounted("mount", "rw");
  EXPECT_EQ(look("mount"), Place::Something);
}

TEST_F(MountsTest, AreFoundUnderNamesThatMountinfoEscapes) {
  mounted("my\\040data", "ro,nosuid,nodev");
  EXPECT_EQ(look("my data"), Place::Copy);
}

TEST_F(MountsTest, AMissingFolderHasNoMount) {
  mounted("mount", "ro,nosuid,nodev");
  EXPECT_EQ(look("gone/mount"), Place::Empty);
}

// Its owner would otherwise choose any folder of the host, writable, for a pod.
TEST_F(MountsTest, AnOutputsFolderThatItsOwnerReplacedByALinkIsNotMounted) {
  if (::geteuid() != 0) SPARK_SKIP("only root mounts, and makes another user's link");
  const auto output = folder_.path / "users" / "output", target = folder_.path / "target";
  std::filesystem::create_directories(output.parent_path());
  std::filesystem::create_directories(folder_.path / "closed");
  std::filesystem::create_directory_symlink(folder_.path / "closed", output);
  ASSERT_EQ(::lchown(output.c_str(), 4903, 4903), 0);
  KernelMounter mounter;
  const auto mounted = mounter.mount(output, target, Access::Writable);
  EXPECT_FALSE(mounted);
  if (mounted) (void)mounter.unmount(target);
  EXPECT_EQ(mounted.error().kind, Errc::Refused);
}

}  // namespace
}  // namespace spark::csi
