// Keys for tests only: consecutive bytes.
#include "nvmetcp/security/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "nvmetcp/connect/fabrics_options.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kKey[] = "NVMeTLSkey-1:01:AwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISL99nVI:";
constexpr char kLongKey[] =
    "NVMeTLSkey-1:02:AwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyaPoIrA==:";

TEST(TlsKey, IsAcceptedWithBothHashesOfTheKernel) {
  const auto key = parse_tls_key(kKey);
  ASSERT_TRUE(key) << key.error().message();
  EXPECT_EQ(key->hash, "01");
  ASSERT_EQ(key->bytes.size(), 32U);
  EXPECT_EQ(key->bytes.front(), 3);
  EXPECT_EQ(key->bytes.back(), 34);
  const auto longer = parse_tls_key(kLongKey);
  ASSERT_TRUE(longer) << longer.error().message();
  EXPECT_EQ(longer->bytes.size(), 48U);
}

TEST(TlsKey, AnInvalidKeyIsRefusedWithoutQuotingIt) {
  const std::string right = kKey;
  std::string mistyped = right;
  mistyped[20] = mistyped[20] == 'A' ? 'B' : 'A';
  for (const std::string& key :
       {std::string(), std::string("NVMeTLSkey-1:01::"), right.substr(0, right.size() - 1),
        "NVMeTLSkey-1:00" + right.substr(15), "NVMeTLSkey-1:02" + right.substr(15),
        "DHHC-1:01" + right.substr(15), mistyped}) {
    const auto parsed = parse_tls_key(key);
    ASSERT_FALSE(parsed) << key;
    EXPECT_EQ(parsed.error().kind, Errc::Invalid);
    EXPECT_THAT(parsed.error().message(), HasSubstr("TLS pre-shared key"));
    if (key.size() <= 30) continue;
    EXPECT_THAT(parsed.error().message(), Not(HasSubstr(key.substr(20, 10))));
  }
}

class TlsFiles : public testing::Test {
 protected:
  test::FakeSysfs files;
  ConnectOptions options;
};

TEST_F(TlsFiles, FilesReadableByOthersAreRefused) {
  files.write("psk", kKey);
  options.tls_psk_file = files.root() / "psk";
  ASSERT_EQ(::chmod(options.tls_psk_file.c_str(), 0600), 0);
  EXPECT_TRUE(read_tls_key(options));
  ASSERT_EQ(::chmod(options.tls_psk_file.c_str(), 0640), 0);
  EXPECT_EQ(read_tls_key(options).error().kind, Errc::Refused);
  EXPECT_THAT(read_tls_key(options).error().message(), HasSubstr("chmod 600"));
}

TEST_F(TlsFiles, ArePassedToConnectOnlyIfConfigured) {
  const auto text = [this] {
    return to_string(io_controller_options("s", {"10.0.0.5", 4420}, {"h", "i"}, options, 2)) + ",";
  };
  EXPECT_THAT(text(), Not(HasSubstr(",tls,")));
  options.tls_psk_file = "/k";
  EXPECT_THAT(text(), HasSubstr(",tls,"));
}

TEST_F(TlsFiles, AClearTextControllerIsRefusedIfTlsIsConfigured) {
  files.write("sys/class/nvme/nvme1/state", "live\n");
  EXPECT_TRUE(check_tls_in_force(files.root(), "nvme1", options));
  options.tls_psk_file = "/k";
  EXPECT_EQ(check_tls_in_force(files.root(), "nvme1", options).error().kind, Errc::Refused);
  files.write("sys/class/nvme/nvme1/tls_key", "\n");
  EXPECT_EQ(check_tls_in_force(files.root(), "nvme1", options).error().kind, Errc::Refused);
  files.write("sys/class/nvme/nvme1/tls_key", "2f4e5d6c\n");
  EXPECT_TRUE(check_tls_in_force(files.root(), "nvme1", options));
}

}  // namespace
}  // namespace spark::nvmetcp
