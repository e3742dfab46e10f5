#include "migration/survey/uses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "migration/import.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::host {
namespace {

using testing::HasSubstr;
using testing::Not;

// /mnt/rosa-storage and /mnt/rosa-models are mounted and taken over.
class Uses : public ::testing::Test {
 protected:
  Uses() { test::set_up_by_hand(host); }
  std::string imported() { return import_configuration(host.root(), survey(host.root()), WallTime{}).yaml; }
  void mount(const std::string& line) {
    host.write("proc/self/mountinfo", read_file(host.root() / "proc/self/mountinfo").value() + "\n" + line);
  }
  // What comes before the first step.
  std::string first() {
    const std::string yaml = imported();
    return yaml.substr(0, yaml.find("# To move"));
  }
  test::FakeSysfs host;
};

TEST_F(Uses, ASwapFileIsNamedBeforeTheSteps) {
  host.write("proc/swaps",
             "Filename\t\tType\t\tSize\tUsed\tPriority\n/dev/sda2 partition 100 0 -2\n"
             "/mnt/rosa-storage/my\\040swap file 100 0 -3\n/swapfile file 1 0 -4\n");
  EXPECT_THAT(first(), HasSubstr("# - swapoff '/mnt/rosa-storage/my swap'\n"));
  EXPECT_THAT(first(), HasSubstr("it keeps volume rosa-storage on /mnt/rosa-storage in use"));
  EXPECT_THAT(imported(), Not(HasSubstr("swapoff /swapfile")));
  EXPECT_THAT(imported(), Not(HasSubstr("/dev/sda2")));
  EXPECT_THAT(imported(), Not(HasSubstr("#   swapoff"))) << "it is no step: what needs it has to end before";
}

TEST_F(Uses, AnImageIsUnmountedOrElseDetached) {
  host.write("sys/block/loop3/loop/backing_file", "/mnt/rosa-models/a.img\n");
  host.write("sys/block/loop4/loop/backing_file", "/mnt/rosa-models/b.img\n");
  host.write("sys/block/loop5/loop/backing_file", "/srv/c.img\n");
  host.write("sys/block/loop6/size", "0\n");
  mount("40 21 7:3 / /opt/a rw - ext4 /dev/loop3 rw");
  EXPECT_THAT(first(), HasSubstr("# - umount /opt/a\n"));
  EXPECT_THAT(first(), HasSubstr("# - losetup -d /dev/loop4\n"));
  EXPECT_THAT(first(), Not(HasSubstr("c.img")));
}

TEST_F(Uses, AnOverlayThatNeedsAFolderIsUnmountedFirst) {
  mount("41 21 0:50 / /srv/merged rw - overlay overlay rw,lowerdir=/srv/b:/mnt/rosa-models/base,upperdir=/u");
  mount("42 21 0:51 / /srv/new rw - overlay overlay rw,lowerdir+=/mnt/rosa-storage,upperdir=/u2,workdir=/w");
  mount("43 21 0:52 / /srv/other rw - overlay overlay rw,lowerdir=/mnt/rosa-models2,upperdir=/u3,workdir=/w");
  EXPECT_THAT(first(), HasSubstr("# - umount /srv/merged\n"));
  EXPECT_THAT(first(), HasSubstr("# - umount /srv/new\n"));
  EXPECT_THAT(first(), Not(HasSubstr("/srv/other")));
}

// `umount` would say busy, and fuser names none of them; or it would leave the file system open.
TEST_F(Uses, AMountBelowAndAnotherOneOfTheDeviceAreUnmountedFirst) {
  mount("44 30 0:53 / /mnt/rosa-storage/tmp rw - tmpfs tmpfs rw");
  mount("45 44 0:54 / /mnt/rosa-storage/tmp/deep rw - tmpfs tmpfs rw");
  mount("46 21 259:3 /hub /srv/hub rw - ext4 /dev/nvme3n1 rw");
  mount("47 21 0:55 / /srv/else rw - tmpfs tmpfs rw");
  const std::string text = first();
  EXPECT_THAT(text, HasSubstr("# - umount /srv/hub\n# - umount /mnt/rosa-storage/tmp/deep\n"
                              "# - umount /mnt/rosa-storage/tmp\n"));
  EXPECT_THAT(text, Not(HasSubstr("/srv/else")));
  EXPECT_THAT(text, Not(HasSubstr("# - umount /mnt/rosa-models")));
}

// The steps are taken with `sed -n 's/^#   //p' FILE | sudo sh -ex`. A user chooses the source and the folder
// of a FUSE mount.
TEST_F(Uses, NoNameOfAMountIsACommand) {
  host.write("sys/block/loop3/loop/backing_file", "/mnt/rosa-models/a.img\n");
  mount("40 21 0:60 / /home/u/x\\012#\\040\\040\\040touch\\040/pwned\\012# rw - fuse /dev/loop3 rw");
  EXPECT_THAT(imported(), HasSubstr("touch /pwned"));
  EXPECT_THAT(imported(), Not(HasSubstr("\n#   touch")));
}

TEST_F(Uses, WithoutThemNothingIsToBeEnded) {
  EXPECT_THAT(first(), Not(HasSubstr("First end")));
}

}  // namespace
}  // namespace spark::host
