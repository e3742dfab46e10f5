#include "nvmetcp/security/path_security.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using testing::HasSubstr;

class PathSecurity : public testing::Test {
 protected:
  void has(const char* controller, const char* attribute, const char* value) {
    files.write(std::string("sys/class/nvme/") + controller + "/" + attribute, value);
  }
  Result<> check() { return check_paths_secured(files.root(), paths, options); }
  static Controller path(const char* name, std::uint16_t port) {
    Controller made;
    made.name = name;
    made.transport = "tcp";
    made.state = "live";
    made.portal = {"10.0.0.5", port};
    return made;
  }

  test::FakeSysfs files;
  std::vector<Controller> paths{path("nvme1", 4420), path("nvme2", 4421)};
  ConnectOptions options;
};

TEST_F(PathSecurity, ChecksNothingWithoutKeysInTheConfiguration) {
  EXPECT_TRUE(check());
}

TEST_F(PathSecurity, APathWithoutAKeyBesideAnAuthenticatedOneIsRefused) {
  options.host_key_file = "/etc/keys/host";
  has("nvme1", "dhchap_secret", "DHHC-1:00:key:");
  has("nvme2", "dhchap_secret", "none");
  ASSERT_FALSE(check());
  EXPECT_EQ(check().error().kind, Errc::Refused);
  EXPECT_THAT(check().error().message(),
              HasSubstr("nvme2 is a path to the same subsystem, at 10.0.0.5:4421"));
  has("nvme2", "dhchap_secret", "DHHC-1:00:key:");
  EXPECT_TRUE(check());
}

TEST_F(PathSecurity, APathInClearTextBesideOneWithTlsIsRefused) {
  options.tls_psk_file = "/etc/keys/psk";
  has("nvme1", "tls_key", "0a1b2c3d");
  EXPECT_THAT(check().error().message(), HasSubstr("in clear text"));
  paths[1].state = "connecting";
  EXPECT_TRUE(check()) << "what is not live carries no data";
}

}  // namespace
}  // namespace spark::nvmetcp
