// doctor's findings about this host's identity, and about other hosts with the same one.
#include "doctor/checks/copied_identity.hpp"
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Doctor, ReportsAMissingIdentity) {
  fake.files.remove("etc/nvme/hostnqn");
  expect("identity", {"hostnqn", "is missing", "sudo spark-stage host new-identity"});
}

TEST_F(Doctor, ReportsAnIdentitySharedByManyBoards) {
  fake.files.write("etc/nvme/hostnqn",
                   "nqn.2014-08.org.nvmexpress:uuid:03000200-0400-0500-0006-000700080009");
  fake.files.write("etc/nvme/hostid", "03000200-0400-0500-0006-000700080009");
  expect("identity", {"many boards", "sudo spark-stage host new-identity"});
}

TEST_F(Doctor, ReportsAnIdentityFromACopiedImage) {
  std::filesystem::last_write_time(fake.files.root() / "etc/nvme/hostnqn",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(24));
  expect("identity",
         {"older than /etc/machine-id", "no two may be equal", "sudo spark-stage host new-identity"});
}

TEST_F(Doctor, ReportsIdentityFilesThatDisagree) {
  fake.files.write("etc/nvme/hostid", "99999999-2222-3333-4444-555555555555");
  expect("identity", {"is not the UUID in /etc/nvme/hostnqn", "may have come from another host"});
}

TEST_F(Doctor, ReportsAConnectionWithAnotherHostsIdentity) {
  auto other = test::tcp_controller("nvme4", "raid5-data");
  other.host_nqn = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555";
  fake.files.add_controller(other);
  expect("identity", {"nvme4", "as another host, nqn.2014-08.org.nvmexpress:uuid:9999", "its own |"});
  other.host_nqn = test::test_host().nqn;
  other.host_id = "99999999-2222-3333-4444-555555555555";
  fake.files.add_controller(other);
  expect("identity", {"with this host's NQN and host ID 99999999", "newer kernels refuse"});
}

TEST(Reservation, KeysOf64BitsSurviveTheJsonBetweenProcesses) {
  const nvmetcp::ReservationReport sent{7, 1, {{"a", 18446744073709551615U, true}}};
  const auto answer = parse_json_object(json::serialize(to_message(sent)));
  ASSERT_TRUE(answer);
  const auto report = from_message<nvmetcp::ReservationReport>(*answer);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->registrants.size(), 1u);
  EXPECT_EQ(report->registrants.front().key, 18446744073709551615U);
  EXPECT_TRUE(report->registrants.front().holds);
}

TEST_F(Doctor, ReportsAnIdentityOfAnotherBoard) {
  const std::string board = "20ab0c4d-5e6f-1a2b-8c3d-0123456789ab";
  const auto has = [&](const std::string& uuid) {
    fake.files.write("etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:" + uuid);
    fake.files.write("etc/nvme/hostid", uuid);
  };
  fake.files.write("sys/class/dmi/id/product_uuid", "4D0CAB20-6F5E-2B1A-8C3D-0123456789AB");
  has(board);  // this board's, in the other byte order
  EXPECT_THAT(found("identity"), IsEmpty());
  fake.files.write("sys/class/dmi/id/product_uuid", board);
  EXPECT_THAT(found("identity"), IsEmpty());
  fake.files.write("sys/class/dmi/id/product_uuid", "30ab0c4d-5e6f-1a2b-8c3d-0123456789ab");
  expect("identity", {"of a kind that boards have, and this board's is another one (30ab0c4d",
                      "no two may be equal", "sudo spark-stage host new-identity"});
  fake.files.write("sys/class/dmi/id/product_uuid", "Not Settable");
  EXPECT_THAT(found("identity"), IsEmpty());
  fake.files.write("sys/class/dmi/id/product_uuid", "30ab0c4d-5e6f-1a2b-8c3d-0123456789ab");
  has("20ab0c4d-5e6f-4a2b-8c3d-0123456789ab");  // a random UUID: its origin is unknown
  EXPECT_THAT(found("identity"), IsEmpty());
}

TEST_F(Doctor, ReportsAForeignRegistrationWithThisHostsId) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  const auto us = test::test_host();
  const auto key = nvmetcp::local_registrant(us, {"0123456789abcdef0123456789abcdef", ""}).key;
  fake.registrants = {{us.id, key, true}, {"99999999-2222-3333-4444-555555555555", 7, false}};
  EXPECT_THAT(found("identity"), IsEmpty());
  fake.registrants = {{us.id, key + 1, true}};
  expect("identity", {"raid5-data: another host or program has registered for and holds its reservation",
                      "another machine, another program of this host", "host new-identity"});
  auto host = fake.host();
  host.is_root = false;
  Report report;
  check_identity(host, report);
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
}

TEST_F(Doctor, ReadsReservationsOfLiveControllersAndStopsAfterATimeout) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  test::connect_by_hand(fake.files, "nvme2", "nvme2n1", "llm-models", "2f7d");
  test::connect_by_hand(fake.files, "nvme3", "nvme3n1", "more", "2f7e");
  fake.files.write("sys/class/nvme/nvme1/state", "connecting");
  auto host = fake.host();
  std::vector<std::string> asked;
  host.read_reservation = [&](const std::string& device,
                              std::uint32_t) -> Result<nvmetcp::ReservationReport> {
    asked.push_back(device);
    return fail(Errc::TimedOut, "no answer within 5 s");
  };
  Report report;
  check_identity(host, report);
  EXPECT_EQ(asked, std::vector<std::string>{"/dev/nvme2n1"});
  EXPECT_THAT(join(report.unknown, "\n"), HasSubstr("nvme2n1: no answer within 5 s"));
}

TEST_F(Doctor, ReportsVolumesThatTheDaemonRefuses) {
  fake.status = R"({"volumes": [{"name": "datasets", "state": "ready", "reason": null}]})";
  EXPECT_THAT(found("identity"), IsEmpty());
  EXPECT_THAT(join(examine(fake.host()).fine, "; "), HasSubstr("the daemon's volumes"));
  fake.status = R"({"volumes": [
      {"name": "a", "state": "refused", "reason": "its host 'spark1' has it open: `sudo spark-stage host new-identity`"},
      {"name": "b", "state": "refused", "reason": "another file system is there"}]})";
  expect("identity", {"volume a is refused: its host 'spark1' has it open", "on the copy: "});
  expect("volume", {"volume b is refused: another file system is there", "volumes up b"});
}

}  // namespace
}  // namespace spark::doctor
