// `volumes format`: its refusals before anything is changed, its summary, and its confirmation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;

struct FakeFormatter final : NamespaceFormatter {
  Result<nvmetcp::Hold> look(const FormatRequest& request) override {
    ++looks;
    last = request;
    return seen;
  }
  Result<nvmetcp::Hold> make(const FormatRequest& request) override {
    ++made;
    last = request;
    return result;
  }
  int looks = 0, made = 0;
  FormatRequest last;
  Result<nvmetcp::Hold> seen = nvmetcp::Hold::Free, result = nvmetcp::Hold::Ours;
};

struct BorrowedFormatter final : NamespaceFormatter {
  explicit BorrowedFormatter(FakeFormatter& lender) : lender_(lender) {}
  Result<nvmetcp::Hold> look(const FormatRequest& request) override { return lender_.look(request); }
  Result<nvmetcp::Hold> make(const FormatRequest& request) override { return lender_.make(request); }
  FakeFormatter& lender_;
};

class Format : public testing::Test {
 protected:
  Format() {
    program.context.root = host.files.root();
    program.context.is_root = true;
    program.context.make_formatter = [this] { return std::make_unique<BorrowedFormatter>(formatter); };
    configure("access: exclusive");
    host.files.add_controller(controller_at("nvme3", "192.168.0.100"));
    host.files.add_node("nvme3", "nvme3n1", 1);
    host.files.add_head("nvme3n1", 1, "259:7", 7'500'000'000);
    host.files.write("sys/class/block/nvme3n1/uuid", "8a5c0000-0000-4000-8000-000000000001");
    host.files.write("proc/self/mountinfo", "");
    host.files.write("proc/sys/kernel/random/uuid", "2f7c1d2e-0000-4000-8000-000000000001");
    program.client.answer("POST /v1/volumes/models/up", 202, R"({"id": "1"})");
    program.client.stream_once("/v1/jobs/1/events",
                               {{R"({"event": "done", "result": {"volume": "models"}})"}});
  }
  static nvmetcp::Controller controller_at(const std::string& name, const std::string& address) {
    auto controller = test::tcp_controller(name, "raid5-data");
    controller.portal.address = address;
    return controller;
  }
  void configure(const std::string& more) {
    host.files.write(
        "config.yaml",
        "version: 1\ntargets: {rose: {address: 192.168.0.100}}\nvolumes:\n  models: {target: rose, "
        "subsystem: raid5-data, mount: /mnt/models, " +
            more + "}\n  nas: {nfs: '10.0.0.1:/a', mount: /mnt/nas}\n");
  }
  int format(std::vector<std::string> options = {"--confirm", "models"}, const std::string& name = "models") {
    options.insert(options.begin(),
                   {"--config", (host.files.root() / "config.yaml").native(), "volumes", "format", name});
    return program.run(options);
  }
  // Expects a refusal with this message, before anything is changed.
  void expect_refused(int status, const std::string& words) {
    EXPECT_EQ(format(), status) << program.errors();
    EXPECT_THAT(program.errors(), HasSubstr(words));
    EXPECT_EQ(formatter.looks + formatter.made, 0);
  }

  test::FakeHost host;
  FakeFormatter formatter;
  Program program;
};

TEST_F(Format, ExplainsTheFormatAndAsksForTheVolumesName) {
  program.in.str("models\n");
  program.context.terminal = {true, true, 60, false, false, 24};
  EXPECT_EQ(format({}), 0) << program.errors();
  expect_golden_screen("format.txt", program.errors() + "\n" + program.output(), 60);
  EXPECT_EQ(formatter.last.device, "/dev/nvme3n1");
  EXPECT_EQ(formatter.last.filesystem.label, "models");
  EXPECT_TRUE(formatter.last.may_reserve);
  EXPECT_FALSE(formatter.last.must_reserve);
  EXPECT_THAT(program.client.sent, ::testing::Contains("POST /v1/volumes/models/up"));
}

TEST_F(Format, AnyAnswerButTheVolumesNameCancels) {
  for (const char* typed : {"", "yes\n", "modles\n"}) {
    program.in.clear();
    program.in.str(typed);
    EXPECT_EQ(format({}), 1);
  }
  EXPECT_EQ(format({"--confirm", "nas"}), 2);
  EXPECT_EQ(format({"--yes"}), 2) << "there is no such option";
  EXPECT_EQ(formatter.made, 0);
  EXPECT_TRUE(program.client.sent.empty());
}

TEST_F(Format, JsonDescribesTheNewFileSystem) {
  EXPECT_EQ(format({"--confirm", "models", "--json", "--label", "weights"}), 0) << program.errors();
  const auto answer = parse_json_object(program.output());
  ASSERT_TRUE(answer) << program.output();
  const json::object* filesystem = get_object(*answer, "filesystem");
  ASSERT_NE(filesystem, nullptr);
  EXPECT_EQ(get_string(*filesystem, "label"), "weights");
  EXPECT_EQ(get_string(*filesystem, "uuid"), "2f7c1d2e-0000-4000-8000-000000000001");
  EXPECT_EQ(get_bool(*answer, "reservation"), true);
  EXPECT_EQ(get_int(*answer, "bytes"), 3'840'000'000'000);
}

TEST_F(Format, WithoutADaemonFormatsAndExplainsTheLaterMount) {
  Program alone;
  alone.context.root = host.files.root();
  alone.context.is_root = true;
  alone.context.make_formatter = program.context.make_formatter;
  alone.client.fail_once("POST /v1/volumes/models/up", {Errc::Unavailable, "no daemon listens", ""});
  EXPECT_EQ(alone.run({"--config", (host.files.root() / "config.yaml").native(), "volumes", "format",
                       "models", "--confirm", "models"}),
            0);
  EXPECT_EQ(formatter.made, 1);
  EXPECT_THAT(alone.output(), HasSubstr("when it is started"));
}

TEST_F(Format, PassesOnTheReasonForRefusingTheDevice) {
  formatter.seen = fail(Errc::Refused, "it holds xfs with UUID 1234", "is it the right namespace?");
  EXPECT_EQ(format(), 7);
  EXPECT_THAT(program.errors(), HasSubstr("it holds xfs with UUID 1234"));
  EXPECT_EQ(formatter.made, 0);
}

TEST_F(Format, NeedsRoot) {
  program.context.is_root = false;
  expect_refused(1, "sudo spark-stage volumes format models");
}

TEST_F(Format, AReadOnlyVolumeIsRefused) {
  configure("access: read-only");
  expect_refused(7, "access: exclusive");
}

TEST_F(Format, AnNfsOrUnknownVolumeIsRefused) {
  EXPECT_EQ(format({}, "nas"), 7);
  EXPECT_EQ(format({}, "modles"), 3);
  EXPECT_THAT(program.errors(), HasSubstr("did you mean 'models'?"));
}

TEST_F(Format, AVolumeWithAKnownFileSystemIsRefused) {
  configure("access: exclusive, filesystem: {uuid: 11111111-2222-3333-4444-555555555555}");
  expect_refused(7, "it is file system 11111111-2222-3333-4444-555555555555");
  configure("access: exclusive");
  host.files.write("var/lib/spark-stage/volumes/models.json", R"({"type": "ext4", "uuid": "7777"})");
  expect_refused(7, "it was file system 7777 when it was mounted here last");
}

TEST_F(Format, NeedsALiveConnection) {
  host.files.add_controller(test::tcp_controller("nvme3", "raid5-data", "connecting"));
  expect_refused(4, "sudo spark-stage volumes up models");
}

TEST_F(Format, ANamespaceAlsoReachedThroughAnotherTargetIsRefused) {
  host.files.add_controller(controller_at("nvme4", "192.168.0.101"));
  host.files.add_node("nvme4", "nvme3n1", 1);
  expect_refused(7, "192.168.0.101:4420 as well");
}

TEST_F(Format, AMountedDeviceOrAnOccupiedMountPointIsRefused) {
  host.files.write("proc/self/mountinfo", "36 25 259:7 / /mnt/elsewhere rw - ext4 /dev/nvme3n1 rw");
  expect_refused(7, "/dev/nvme3n1 is mounted on /mnt/elsewhere");
  host.files.write("proc/self/mountinfo", "36 25 8:1 / /mnt/models rw - ext4 /dev/sda1 rw");
  expect_refused(7, "/dev/sda1 is mounted on /mnt/models");
}

TEST_F(Format, AnXfsNeedsAReservation) {
  EXPECT_EQ(format({"--type", "xfs", "--confirm", "models"}), 0) << program.errors();
  EXPECT_TRUE(formatter.last.must_reserve);
  configure("access: exclusive, fence: mmp");
  EXPECT_EQ(format({"--type", "xfs", "--confirm", "models"}), 7);
  EXPECT_THAT(program.errors(), HasSubstr("fence"));
}

TEST_F(Format, TheConfigurationsTypeIsTheDefault) {
  configure("access: exclusive, filesystem: {type: xfs}");
  EXPECT_EQ(format(), 0) << program.errors();
  EXPECT_EQ(formatter.last.filesystem.type, "xfs");
  EXPECT_EQ(format({"--type", "ext4"}), 2);
}

TEST_F(Format, ATooLongLabelIsAUsageError) {
  EXPECT_EQ(format({"--label", "longer-than-sixteen"}), 2);
  EXPECT_THAT(program.errors(), HasSubstr("16 characters"));
}

}  // namespace
}  // namespace spark::cli
