// Keys for tests only: consecutive bytes.
#include "nvmetcp/security/keys.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "nvmetcp/connect/fabrics_options.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHostKey[] = "DHHC-1:01:BwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYDWRHm:";
constexpr char kControllerKey[] =
    "DHHC-1:03:WltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmU5l4Mc=:";
constexpr char kPlainKey[] =
    "DHHC-1:00:AwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyaPoIrA==:";
constexpr char kMistyped[] = "DHHC-1:01:BwgJAgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYDWRHm:";

TEST(Keys, KeysOfEveryHashAreAccepted) {
  for (const char* key : {kHostKey, kControllerKey, kPlainKey}) EXPECT_TRUE(check_key(key)) << key;
}

TEST(Keys, InvalidKeysAreRefusedWithoutQuotingThem) {
  const std::string right = kHostKey;
  const std::vector<std::string> wrong = {"",
                                          "secret",
                                          "DHHC-1:",
                                          "DHHC-1:01:",
                                          "DHHC-1:01::",
                                          "DHHC-2" + right.substr(6),
                                          right.substr(0, right.size() - 1),
                                          right + "x",
                                          "DHHC-1:02" + right.substr(9),
                                          "DHHC-1:04" + right.substr(9),
                                          "DHHC-1:01:AAAA:",
                                          "DHHC-1:01:====:",
                                          "DHHC-1:01:" + std::string(48, '*') + ":",
                                          right.substr(0, 30) + ":",
                                          kMistyped};
  for (const std::string& key : wrong) {
    const auto checked = check_key(key);
    ASSERT_FALSE(checked) << key;
    EXPECT_EQ(checked.error().kind, Errc::Invalid);
    if (key.size() <= 20) continue;
    EXPECT_THAT(checked.error().message(), Not(HasSubstr(key.substr(10, 10))));
  }
  EXPECT_THAT(check_key(kMistyped).error().message(), HasSubstr("mistyped"));
}

class KeyFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content, mode_t mode = 0600) {
    files.write(name, content);
    const std::string path = files.root() / name;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  Error refusal() { return read_keys(options).error(); }

  test::FakeSysfs files;
  ConnectOptions options;
};

TEST_F(KeyFiles, OnlyTheNamedFilesAreRead) {
  options.host_key_file = file("host", kHostKey);
  auto keys = read_keys(options);
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->host, kHostKey);
  EXPECT_EQ(keys->controller, "");
  options.controller_key_file = file("ctrl", kControllerKey, 0400);
  keys = read_keys(options);
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->controller, kControllerKey);
}

TEST_F(KeyFiles, ReadingOneDisablesCoreDumps) {
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  options.host_key_file = file("host", kHostKey);
  ASSERT_TRUE(read_keys(options));
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
}

TEST_F(KeyFiles, FilesAccessibleToOthersAreRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    options.host_key_file = file("host", kHostKey, mode);
    EXPECT_EQ(refusal().kind, Errc::Refused);
    EXPECT_THAT(refusal().message(), HasSubstr("chmod 600 " + options.host_key_file));
  }
}

TEST_F(KeyFiles, FilesOfAnotherUserAreRefused) {
  options.host_key_file = file("host", kHostKey);
  if (::chown(options.host_key_file.c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a file away: run as root";
  }
  EXPECT_EQ(refusal().kind, Errc::Refused);
  EXPECT_THAT(refusal().message(), HasSubstr("uid 12345"));
}

TEST_F(KeyFiles, MissingFilesAndFoldersAreRefusedByName) {
  options.host_key_file = files.root() / "nowhere";
  EXPECT_EQ(refusal().kind, Errc::Refused);
  EXPECT_THAT(refusal().message(), HasSubstr(options.host_key_file));
  options.host_key_file = files.root() / ".";
  EXPECT_EQ(refusal().kind, Errc::Refused);
}

TEST_F(KeyFiles, FilesWithoutAKeyAreRefusedWithoutQuotingThem) {
  options.host_key_file = file("host", "hunter2-hunter2");
  EXPECT_EQ(refusal().kind, Errc::Refused);
  EXPECT_THAT(refusal().message(), HasSubstr(options.host_key_file));
  EXPECT_THAT(refusal().message(), Not(HasSubstr("hunter2")));
}

TEST_F(KeyFiles, ArePassedToConnectOnlyIfConfigured) {
  const auto text = [this](const Keys& keys) {
    return to_string(io_controller_options("s", {"10.0.0.5", 4420}, {"h", "i"}, options, 2, keys));
  };
  EXPECT_THAT(text({}), Not(HasSubstr("dhchap")));
  options.host_key_file = "/k";
  EXPECT_THAT(text({"A", ""}), HasSubstr(",dhchap_secret=A"));
  EXPECT_THAT(text({"A", ""}), Not(HasSubstr("dhchap_ctrl_secret")));
  options.controller_key_file = "/c";
  EXPECT_THAT(text({"A", "B"}), HasSubstr(",dhchap_secret=A,dhchap_ctrl_secret=B"));
}

TEST_F(KeyFiles, AKernelWithoutAuthenticationIsRefusedAndTheOptionNamed) {
  options.host_key_file = "/k";
  const auto asked = io_controller_options("s", {"10.0.0.5", 4420}, {"h", "i"}, options, 2);
  const auto known = check_supported(
      asked,
      "instance=-1,nqn=%s,transport=%s,traddr=%s,trsvcid=%s,hostnqn=%s,hostid=%s,nr_io_queues=%d,"
      "keep_alive_tmo=%d,reconnect_delay=%d,ctrl_loss_tmo=%d",
      "6.1.0");
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().kind, Errc::Unsupported);
  EXPECT_THAT(known.error().message(), HasSubstr("6.1.0 does not know the connection option dhchap_secret"));
}

TEST_F(KeyFiles, AConnectionWithoutThemOrWithOthersIsRefused) {
  options.host_key_file = "/etc/keys/host";
  const auto in_force = [this](const char* held) {
    files.write("sys/class/nvme/nvme1/dhchap_secret", held);
    return check_keys_in_force(files.root(), "nvme1", options, {kHostKey, ""});
  };
  EXPECT_TRUE(in_force(kHostKey));
  EXPECT_EQ(in_force("none").error().kind, Errc::Refused);
  EXPECT_THAT(in_force(kPlainKey).error().message(), HasSubstr("without the key in /etc/keys/host"));
  EXPECT_THAT(in_force(kPlainKey).error().message(), Not(HasSubstr("DHHC")));
  files.remove("sys/class/nvme/nvme1/dhchap_secret");
  const auto without = check_keys_in_force(files.root(), "nvme1", options, {kHostKey, ""});
  EXPECT_EQ(without.error().kind, Errc::Unsupported);
  EXPECT_THAT(without.error().message(), HasSubstr("this kernel was built without NVMe authentication"));
}

TEST_F(KeyFiles, AConnectionsKeysAreDetectedWithoutTheFile) {
  options.host_key_file = "/etc/keys/host";
  files.write("sys/class/nvme/nvme1/dhchap_secret", kPlainKey);
  EXPECT_TRUE(holds_keys(files.root(), "nvme1", options));
  options.controller_key_file = "/etc/keys/controller";
  EXPECT_FALSE(holds_keys(files.root(), "nvme1", options));
  files.write("sys/class/nvme/nvme1/dhchap_ctrl_secret", kPlainKey);
  EXPECT_TRUE(holds_keys(files.root(), "nvme1", options));
  files.write("sys/class/nvme/nvme1/dhchap_secret", "none");
  EXPECT_FALSE(holds_keys(files.root(), "nvme1", options));
}

TEST_F(KeyFiles, OnlyThePrefixOfAnActiveKeyIsRead) {
  options.host_key_file = "/etc/keys/host";
  const auto attribute = files.root() / "sys/class/nvme/nvme1/dhchap_secret";
  std::filesystem::create_directories(attribute.parent_path());
  ASSERT_EQ(::mkfifo(attribute.c_str(), 0600), 0);
  const UniqueFd pipe(::open(attribute.c_str(), O_RDWR | O_CLOEXEC));
  const std::string key = kPlainKey;
  ASSERT_EQ(::write(pipe.get(), key.data(), key.size()), static_cast<ssize_t>(key.size()));
  EXPECT_TRUE(holds_keys(files.root(), "nvme1", options));
  int left = 0;
  ASSERT_EQ(::ioctl(pipe.get(), FIONREAD, &left), 0);
  EXPECT_EQ(static_cast<std::size_t>(left), key.size() - 7);
}

TEST_F(KeyFiles, ATargetThatAsksForNoKeyIsRefused) {
  options.host_key_file = "/etc/keys/host";
  EXPECT_TRUE(check_authenticated({"nvme nvme1: qid 0: authenticated"}, "nvme1", options));
  EXPECT_TRUE(check_authenticated({"nvme nvme1: qid 0: authenticated with hash hmac(sha256) dhgroup null"},
                                  "nvme1", options));
  EXPECT_THAT(check_authenticated({"nvme nvme2: qid 0: authenticated"}, "nvme1", options).error().message(),
              HasSubstr("did not ask for the key in /etc/keys/host"));
  options.controller_key_file = "/etc/keys/ctrl";
  EXPECT_THAT(check_authenticated({"nvme nvme1: qid 0: authenticated"}, "nvme1", options).error().message(),
              HasSubstr("did not prove that it has the key in /etc/keys/ctrl"));
  EXPECT_TRUE(check_authenticated(
      {"nvme nvme1: qid 0: controller authenticated", "nvme nvme1: qid 0: authenticated"}, "nvme1", options));
}

}  // namespace
}  // namespace spark::nvmetcp
