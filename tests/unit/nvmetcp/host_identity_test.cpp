#include "nvmetcp/host_identity.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

constexpr const char* kUuid = "11111111-2222-3333-4444-5555555555ab";

struct HostIdentityTest : testing::Test {
  void write(const std::string& nqn, const std::string& id) {
    files.write("etc/nvme/hostnqn", nqn);
    files.write("etc/nvme/hostid", id);
  }
  Result<HostIdentity> read() { return read_host_identity(files.root()); }
  test::FakeSysfs files;
};

TEST_F(HostIdentityTest, BothFilesMakeAnIdentity) {
  write(std::string("nqn.2014-08.org.nvmexpress:uuid:") + kUuid, "11111111-2222-3333-4444-5555555555AB");
  const HostIdentity host = read().value();
  EXPECT_EQ(host.nqn, std::string("nqn.2014-08.org.nvmexpress:uuid:") + kUuid);
  EXPECT_EQ(host.id, kUuid);
  EXPECT_FALSE(identity_doubt(host));
}

TEST_F(HostIdentityTest, AMissingFileSaysHowToMakeBoth) {
  files.write("etc/nvme/hostid", kUuid);
  const auto host = read();
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().kind, Errc::NotFound);
  EXPECT_NE(host.error().what.find("etc/nvme/hostnqn is missing"), std::string::npos);
  EXPECT_NE(host.error().hint.find("sudo spark-stage host new-identity"), std::string::npos);
}

TEST_F(HostIdentityTest, AnEmptyFileIsNamedEmpty) {
  write("nqn.2026-01.io.spark:node1", "");
  EXPECT_NE(read().error().what.find("hostid is empty"), std::string::npos);
}

TEST_F(HostIdentityTest, AnNqnWithoutUuidIsFine) {
  write("nqn.2026-01.io.spark:node1", kUuid);
  EXPECT_EQ(read().value().nqn, "nqn.2026-01.io.spark:node1");
  EXPECT_FALSE(identity_doubt(read().value()));
}

TEST_F(HostIdentityTest, AnAmbiguousOrMalformedIdentityIsInvalid) {
  const std::string zero = "00000000-0000-0000-0000-000000000000";
  const std::string uuid_nqn = "nqn.2014-08.org.nvmexpress:uuid:";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {uuid_nqn + zero, kUuid},     {"nqn.x", zero},
      {"nqn.x", "not-a-uuid"},      {uuid_nqn + "1234", kUuid},
      {"nqn.x,traddr=evil", kUuid}, {std::string(224, 'n'), kUuid}};
  for (const auto& [nqn, id] : bad) {
    write(nqn, id);
    const auto host = read();
    ASSERT_FALSE(host) << nqn << " " << id;
    EXPECT_EQ(host.error().kind, Errc::Invalid);
    EXPECT_FALSE(host.error().hint.empty());
  }
}

TEST_F(HostIdentityTest, AMismatchedPairIsUsableButReportedAsDoubtful) {
  write("nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555", kUuid);
  const HostIdentity host = read().value();
  ASSERT_TRUE(identity_doubt(host));
  EXPECT_NE(identity_doubt(host)->find("99999999"), std::string::npos);
}

TEST_F(HostIdentityTest, AFreshIdentityHasOneUuidAndTheOldFilesAreKept) {
  files.write("proc/sys/kernel/random/uuid", kUuid);
  write("nqn.2026-01.io.spark:node1", "not-a-uuid");
  const HostIdentity fresh = fresh_host_identity(files.root()).value();
  EXPECT_EQ(fresh.nqn, std::string("nqn.2014-08.org.nvmexpress:uuid:") + kUuid);
  const auto kept = write_host_identity(files.root(), fresh);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(*kept, (std::vector<std::string>{"/etc/nvme/hostnqn.old", "/etc/nvme/hostid.old"}));
  EXPECT_EQ(files.read("etc/nvme/hostnqn.old"), "nqn.2026-01.io.spark:node1");
  EXPECT_EQ(read().value().nqn, fresh.nqn);
  EXPECT_EQ(read().value().id, kUuid);
  EXPECT_FALSE(identity_doubt(*read()));
  struct stat status {};
  ASSERT_EQ(::stat((files.root() / "etc/nvme/hostid").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644u);
}

TEST_F(HostIdentityTest, AMissingIdentityIsMadeOnceAndAnExistingOneIsKept) {
  files.write("proc/sys/kernel/random/uuid", kUuid);
  ASSERT_EQ(make_missing_host_identity(files.root()), true);
  EXPECT_EQ(read().value().id, kUuid);
  files.write("proc/sys/kernel/random/uuid", "99999999-2222-3333-4444-555555555555");
  EXPECT_EQ(make_missing_host_identity(files.root()), false);
  EXPECT_EQ(read().value().id, kUuid);
  write("not-an-nqn", kUuid);
  EXPECT_EQ(make_missing_host_identity(files.root()), false) << "a wrong one is a person's to replace";
  EXPECT_EQ(files.read("etc/nvme/hostnqn"), "not-an-nqn");
}

TEST_F(HostIdentityTest, TwoFreshOnesDiffer) {
  EXPECT_NE(fresh_host_identity({})->id, fresh_host_identity({})->id);
}

}  // namespace
}  // namespace spark::nvmetcp
