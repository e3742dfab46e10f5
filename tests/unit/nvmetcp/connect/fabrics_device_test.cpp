#include "nvmetcp/connect/fabrics_device.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

#include "nvmetcp/names.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

TEST(LoadTransport, NothingIsRunWhenTheDriverIsThere) {
  test::FakeSysfs files;
  files.write("dev/nvme-fabrics", "");
  files.write("sys/module/nvme_tcp/refcnt", "0");
  EXPECT_TRUE(load_transport(files.root(), {"false"}));
}

TEST(LoadTransport, TheLoaderRunsWhenThereIsNoDriver) {
  const test::FakeSysfs files;
  EXPECT_TRUE(load_transport(files.root(), {"true"}));
}

TEST(LoadTransport, AMissingModuleIsUnsupportedWithTheLoadersMessage) {
  const test::FakeSysfs files;
  const auto loaded = load_transport(
      files.root(), {"sh", "-c", "echo 'modprobe: FATAL: Module nvme-tcp not found' >&2; exit 1"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, Errc::Unsupported);
  EXPECT_NE(loaded.error().what.find("Module nvme-tcp not found"), std::string::npos);
  EXPECT_NE(loaded.error().hint.find("reboot"), std::string::npos);  // nothing of lib/modules is there
}

TEST(LoadTransport, EachDistributionHasItsOwnWayToTheDriver) {
  test::FakeSysfs files;
  files.write("lib/modules/6.12.1/modules.dep", "");
  for (const auto& [system, way] : std::map<std::string, std::string>{
           {"NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n", "sudo apt install linux-modules-extra-6.12.1"},
           {"NAME=\"Debian GNU/Linux\"\nID=debian\n", "sudo apt install linux-image-a"},
           {"ID=arch\n", "CONFIG_NVME_TCP"}}) {
    files.write("etc/os-release", system);
    EXPECT_NE(how_to_get_driver(files.root(), "6.12.1").find(way), std::string::npos) << system;
  }
  EXPECT_NE(how_to_get_driver(files.root(), "6.12.2").find("reboot"), std::string::npos);
}

TEST(LoadTransport, WithoutPermissionItIsDenied) {
  const test::FakeSysfs files;
  const auto loaded = load_transport(
      files.root(), {"sh", "-c", "echo 'could not insert: Operation not permitted' >&2; exit 1"});
  EXPECT_EQ(loaded.error().kind, Errc::Denied);
}

TEST(FabricsDevice, OptionsAreCheckedAgainstTheKernelsList) {
  test::FakeSysfs files;
  files.write("dev/nvme-fabrics", "instance=-1,cntlid=-1,transport=%s,nqn=%s");
  EXPECT_TRUE(check_supported(files.root(), {{"transport", "tcp"}}));
  EXPECT_EQ(check_supported(files.root(), {{"tls", ""}}).error().kind, Errc::Unsupported);
}

TEST(FabricsDevice, TheOptionStringIsWritten) {
  test::FakeSysfs files;
  files.write("dev/nvme-fabrics", "");
  const auto made = create_controller(files.root(), {{"nqn", "s"}, {"transport", "tcp"}});
  ASSERT_FALSE(made);  // a plain file does not answer
  EXPECT_EQ(made.error().number, EBADMSG);
  EXPECT_EQ(files.read("dev/nvme-fabrics"), "nqn=s,transport=tcp");
}

TEST(FabricsDevice, AMissingDeviceReturnsItsErrno) {
  const test::FakeSysfs files;
  EXPECT_EQ(create_controller(files.root(), {}).error().number, ENOENT);
}

TEST(Names, ControllersAndNamespacesAreDistinguished) {
  EXPECT_TRUE(is_controller_name("nvme10"));
  for (const char* other : {"nvme", "nvme1n1", "nvme1c1n1", "nvme-fabrics", "nvme1 ", ""}) {
    EXPECT_FALSE(is_controller_name(other)) << other;
  }
  EXPECT_EQ(parse_namespace_name("nvme1n2")->block_device(), "nvme1n2");
  EXPECT_EQ(parse_namespace_name("nvme1c12n2")->block_device(), "nvme1n2");
  for (const char* other : {"nvme1", "nvme1n", "nvme1c2", "nvme1n1p1", "nvmen1", "hwmon3", "ng1n1"}) {
    EXPECT_FALSE(parse_namespace_name(other)) << other;
  }
}

}  // namespace
}  // namespace spark::nvmetcp
