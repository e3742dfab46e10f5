#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"
#include "tests/support/fake_host.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

std::string screen_of(const doctor::Host& host, Terminal terminal = {}) {
  std::ostringstream out;
  print_findings(out, terminal, to_json(doctor::examine(host)));
  return out.str();
}

TEST(DoctorScreen, NamesEachFindingOfAManualSetup) {
  test::FakeHost fake;
  fake.has_config = false;
  test::set_up_by_hand(fake.files);
  const std::string screen = screen_of(fake.host());
  for (const std::string& line : split(screen, '\n')) {
    EXPECT_TRUE(display_width(line) <= 80 || line.find("       ") != 0) << line;
  }
  expect_golden("doctor.txt", screen);
}

TEST(DoctorScreen, NamesProblemsOfConnectionsAndTheNetwork) {
  test::FakeHost fake;
  fake.has_config = false;
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7");
  fake.files.write("sys/class/nvme/nvme1/kato", "0");
  fake.files.write("sys/class/nvme/nvme1/queue_count", "2");
  fake.files.write("sys/class/nvme/nvme1/ctrl_loss_tmo", "600");
  fake.files.write("etc/fstab", "192.168.0.98:/data /mnt/nas nfs4 rw 0 0");
  fake.files.write("etc/nvme/hostid", "99999999-2222-3333-4444-555555555555");
  fake.add_nic("enP7s7", 10'000, 9000, "192.168.0.110");
  fake.data_comes_in = "enP7s7";
  expect_golden("doctor_network.txt", screen_of(fake.host()));
}

TEST(DoctorScreen, MatchesTheGoldenFileForAHealthyHost) {
  test::FakeHost fake;
  const json::object report = to_json(doctor::examine(fake.host()));
  std::ostringstream out;
  print_findings(out, {true, true, 80, false}, report);
  expect_golden_screen("doctor-healthy.txt", out.str());
}

TEST(DoctorScreen, IsShortForAHealthyHost) {
  test::FakeHost fake;
  const std::string screen = screen_of(fake.host());
  EXPECT_TRUE(screen.ends_with("Nothing is wrong.\n")) << screen;
  EXPECT_LE(split(screen, '\n').size(), 7u) << screen;
  EXPECT_NE(screen.find("\n       target rose: fast0, 200 Gb/s, packets of 9000 bytes\n"), std::string::npos)
      << screen;
}

class DoctorVerb : public ::testing::Test {
 protected:
  // The verb asks the real drive for its free space, and the drive of this computer may be nearly full.
  DoctorVerb() {
    program.context.root = fake.files.root();
    program.client.answer("GET /v1/status", 200, "{}");
    fake.files.write("doctor.yaml", "version: 1\ncache: {keep_free: 1MiB}\n");
  }
  test::FakeHost fake;
  const std::string config = fake.files.root() / "doctor.yaml";
  Program program;
};

TEST_F(DoctorVerb, ExitsWithOneIfSomethingIsWrong) {
  fake.files.remove("etc/nvme/hostnqn");
  EXPECT_EQ(program.run({"doctor", "--config", config}), 1) << program.output();
  EXPECT_NE(program.output().find("WRONG"), std::string::npos);
}

TEST_F(DoctorVerb, NotesAloneExitWithZero) {
  EXPECT_EQ(program.run({"doctor", "--config", config, "--json"}), 0) << program.output();
  const auto report = parse_json_object(program.output());
  ASSERT_TRUE(report);
  EXPECT_EQ(get_int(*report, "wrong"), 0);
  EXPECT_GE(get_int(*report, "notes").value_or(0), 1);
  EXPECT_NE(get_array(*report, "findings"), nullptr);
}

}  // namespace
}  // namespace spark::cli
