// doctor's findings about NFS mounts.
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::IsEmpty;

TEST_F(Doctor, ReportsAnNfsMountWithASingleConnection) {
  fake.files.write("proc/self/mountinfo",
                   "41 22 0:52 / /mnt/nas rw,relatime - nfs4 nas:/data rw,vers=4.2,proto=tcp\n");
  expect("nfs", {"/mnt/nas has a single connection", "nconnect="});
}

TEST_F(Doctor, AcceptsNfsMountsWithSeveralConnections) {
  fake.files.write("proc/self/mountinfo",
                   "41 22 0:52 / /mnt/nas rw,relatime - nfs4 nas:/data rw,vers=4.2,proto=tcp,nconnect=8\n"
                   "42 22 0:53 / /mnt/fast rw,relatime - nfs nas:/data rw,vers=3,proto=rdma\n");
  EXPECT_THAT(found("nfs"), IsEmpty());
}

}  // namespace
}  // namespace spark::doctor
