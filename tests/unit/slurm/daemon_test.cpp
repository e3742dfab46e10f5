#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_daemon.hpp"

extern "C" {
#include "slurm/daemon.h"
}

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kConfig[] = R"({"volumes":{"data":{}},"datasets":{"imagenet":{}}})";
constexpr char kUnknown[] =
    R"({"error":{"kind":"not_found","what":"there is no dataset 'imagnet'; did you mean 'imagenet'?","hint":"known: imagenet"}})";

class DaemonTest : public testing::Test {
 protected:
  int check(FakeDaemon& fake, const char* names) {
    const Daemon daemon = daemon_at(fake.path());
    NameList list{};
    EXPECT_EQ(parse_names("stage", names, &list, &failure_), 0);
    const int result = check_names(&daemon, &list, &wait_, &failure_);
    free_names(&list);
    return result;
  }

  Wait wait_ = wait_for_ms(60'000, -1);
  Failure failure_{};
};

TEST_F(DaemonTest, ConfiguredNamesNeedOneRequest) {
  FakeDaemon fake({answer(200, kConfig)});
  EXPECT_EQ(check(fake, "imagenet,data:coco"), 0);
  EXPECT_THAT(fake.requests(), ElementsAre(StartsWith("GET /v1/config ")));
}

TEST_F(DaemonTest, ADaemonThatRestartsIsWaitedForIfItIsExpected) {
  const std::filesystem::path link = std::filesystem::path(testing::TempDir()) / "spark-restarting.sock";
  std::filesystem::remove(link);
  const std::string socket = link;
  const Daemon daemon = daemon_at(socket.c_str());
  const Wait soon = wait_for_ms(5000, -1);
  EXPECT_EQ(read_config(&daemon, &soon, &failure_), nullptr);
  FakeDaemon fake({answer(200, kConfig)});
  std::thread starts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::filesystem::create_symlink(fake.path(), link);
  });
  const Wait wait = wait_for_restart_ms(60'000, 1000, -1);
  char* config = read_config(&daemon, &wait, &failure_);
  starts.join();
  EXPECT_STREQ(config, kConfig);
  free(config);
  std::filesystem::remove(link);
}

TEST_F(DaemonTest, AnUnknownNameIsRefusedWithTheDaemonsMessage) {
  FakeDaemon fake({answer(200, kConfig), answer(404, kUnknown)});
  EXPECT_EQ(check(fake, "imagenet,imagnet"), -1);
  EXPECT_STREQ(failure_.what, "there is no dataset 'imagnet'; did you mean 'imagenet'?");
  EXPECT_STREQ(failure_.hint, "known: imagenet");
  EXPECT_THAT(fake.requests().back(), HasSubstr(R"({"datasets":["imagnet"]})"));
}

TEST_F(DaemonTest, AUserWithoutAccessToTheDaemonIsNotRefused) {
  FakeDaemon denied(
      {answer(403, R"({"error":{"kind":"denied","what":"uid 5 may not use spark-stage","hint":""}})")});
  EXPECT_EQ(check(denied, "imagnet"), 0);
}

TEST_F(DaemonTest, AHostWithoutADaemonRefusesNothing) {
  const Daemon nowhere = daemon_at("/nowhere/api.sock");
  char name[] = "imagnet";
  char* names[] = {name};
  const NameList list{1, names, nullptr};
  EXPECT_EQ(check_names(&nowhere, &list, &wait_, &failure_), 0);
}

TEST_F(DaemonTest, AJobIsReleasedByItsIdAndARepeatedReleaseSucceeds) {
  FakeDaemon fake({answer(200, "{}"),
                   answer(404, R"({"error":{"kind":"not_found","what":"no lease","hint":""}})"),
                   answer(500, R"({"error":{"kind":"failed","what":"broken","hint":""}})")});
  const Daemon daemon = daemon_at(fake.path());
  EXPECT_EQ(release_job(&daemon, 42, &wait_, &failure_), 0);
  EXPECT_EQ(release_job(&daemon, 42, &wait_, &failure_), 0);
  EXPECT_EQ(release_job(&daemon, 42, &wait_, &failure_), -1);
  EXPECT_THAT(fake.requests().front(), StartsWith("DELETE /v1/leases/job:slurm:42 "));
}

TEST_F(DaemonTest, AnUnreachableDaemonIsNamedWithTheCommandToStartIt) {
  const Daemon nowhere = daemon_at("/nowhere/api.sock");
  EXPECT_EQ(release_job(&nowhere, 42, &wait_, &failure_), -1);
  EXPECT_STREQ(failure_.what,
               "spark-staged on n1 does not answer on /nowhere/api.sock: No such file or directory");
  EXPECT_THAT(failure_.hint, HasSubstr("systemctl start spark-staged"));
}

}  // namespace
}  // namespace spark
