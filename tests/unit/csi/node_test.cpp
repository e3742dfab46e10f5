#include "csi/node.hpp"

#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRelease[] = "DELETE /v1/leases/job%3Acsi%3Acsi-1f";

// Time advances only while the node sleeps.
class FakeClock final : public Clock {
 public:
  WallTime wall() const override { return {}; }
  SteadyTime steady() const override { return now; }
  SteadyTime now = std::chrono::steady_clock::now();
};

constexpr char kQueued[] = R"({"event": "progress", "phase": "queued"})";
constexpr char kDone[] = R"({"event": "done", "result": {"datasets": [{"path": "/cache/1"}]}})";

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    client_.on("GET /v1/config", 200, kConfig);
    client_.on("POST /v1/stagings", 202, R"({"id": "7", "key": "7-1f"})");
    client_.on("GET /v1/datasets", 200, listing("csi-1f", "imagenet"));
    client_.on(kRelease, 200, "{}");
    follows({{kDone}});
  }
  void follows(std::vector<std::vector<std::string>> lists) {
    client_.on_stream("/v1/jobs/7-1f/events", std::move(lists));
  }
  Call call() {
    return {clock_.now, clock_.now + kKubeletWaits, [this] { return is_abandoned_; }};
  }
  Status publish(const std::string& dataset = "imagenet") {
    return node_.publish(request_for(dataset), call());
  }
  Status unpublish() { return node_.unpublish("csi-1f", "/pods/1/mount", call()); }

  FakeClock clock_;
  FakeClient client_;
  FakeMounter mounter_;
  Daemon daemon_{client_};
  bool is_abandoned_ = false;
  std::function<void()> on_sleep_ = [] {};
  std::vector<std::string> said_;
  Node node_{daemon_, mounter_, clock_,
             [this](Duration time) {
               clock_.now += time;
               on_sleep_();
             },
             [this](const std::string& sentence) { said_.push_back(sentence); }};
};

TEST_F(NodeTest, MountsTheCopyWhenItIsStaged) {
  follows({{kQueued, kQueued, kDone}});
  const Status status = publish();
  EXPECT_TRUE(status.is_ok()) << status.sentence;
  EXPECT_EQ(mounter_.mounted["/pods/1/mount"], "/cache/1");
}

TEST_F(NodeTest, WaitsUntilJustBeforeTheDeadlineAndReportsProgress) {
  client_.on_line = [this] { clock_.now += std::chrono::seconds(1); };
  follows({std::vector<std::string>(
      120,
      R"({"event": "progress", "phase": "copying", "bytes_done": 62, "bytes_total": 100, "eta_s": 170})")});
  const SteadyTime began = clock_.now;
  const Status status = publish();
  EXPECT_EQ(status.code, Code::Aborted);
  EXPECT_EQ(status.sentence, "imagenet: 62 %, 3 min left");
  EXPECT_GE(clock_.now - began, std::chrono::seconds(110));
  EXPECT_LE(clock_.now - began, std::chrono::seconds(111));
  EXPECT_EQ(client_.count("POST /v1/stagings"), 1);
  EXPECT_EQ(client_.count(kRelease), 0) << "the staging goes on";
  follows({{kDone}});
  EXPECT_TRUE(publish().is_ok());
}

TEST_F(NodeTest, ASourceThatIsAwayIsWaitedForWithoutALimitAndItsReasonReported) {
  client_.on_line = [this] { clock_.now += std::chrono::seconds(1); };
  follows({std::vector<std::string>(
      120,
      R"({"event": "progress", "phase": "stalled", "reason": "volume datasets is lost", "bytes_total": 0})")});
  EXPECT_EQ(publish().sentence, "imagenet: stalled: volume datasets is lost");
  EXPECT_THAT(client_.bodies, testing::Contains(HasSubstr(R"("wait_s":null)")));
}

TEST_F(NodeTest, EndsAnAbandonedCall) {
  follows({{kQueued, kQueued}});
  client_.on_line = [this] { is_abandoned_ = true; };
  EXPECT_EQ(publish().code, Code::Aborted);
  EXPECT_TRUE(mounter_.mounted.empty());
}

TEST_F(NodeTest, RepeatedPublishCallsMountOnce) {
  ASSERT_TRUE(publish().is_ok());
  EXPECT_TRUE(publish().is_ok());
  EXPECT_EQ(publish("secret").code, Code::AlreadyExists);
  client_.is_away = true;
  EXPECT_TRUE(publish().is_ok()) << "a daemon that is away does not disturb a pod that has its data";
}

TEST_F(NodeTest, ARepeatedPublishCallClaimsTheCopyThatIsMounted) {
  ASSERT_TRUE(publish().is_ok());
  client_.on("GET /v1/config", 200, R"({"datasets": {}})");  // it was removed from the configuration
  EXPECT_TRUE(publish().is_ok());
  EXPECT_EQ(client_.count("POST /v1/stagings"), 2);
  EXPECT_THAT(client_.bodies, testing::Contains(HasSubstr(R"("generation":1)"))) << "2 is newer";
}

TEST_F(NodeTest, APodStartsWithTheLiveViewAndKeepsIt) {
  follows(
      {{kQueued, R"({"event": "done", "result": {"datasets": [{"path": "/live/1", "state": "live"}]}})"}});
  PublishRequest now = request_for("imagenet");
  now.context["now"] = "true";
  EXPECT_EQ(node_.publish(now, call()).code, Code::Ok);
  EXPECT_EQ(mounter_.mounted["/pods/1/mount"], "/live/1");
  EXPECT_THAT(client_.bodies, testing::Contains(HasSubstr(R"("now":true)")));
  const long asked = client_.count("POST /v1/stagings");
  EXPECT_EQ(node_.publish(now, call()).code, Code::Ok) << "as a restarted kubelet does";
  EXPECT_EQ(client_.count("POST /v1/stagings"), asked) << "it has its lease, and the view is no copy";
  EXPECT_EQ(mounter_.mounted["/pods/1/mount"], "/live/1");
  EXPECT_THAT(said_, testing::Not(testing::Contains(HasSubstr("without a lease"))));
  EXPECT_EQ(unpublish().code, Code::Ok);
  EXPECT_EQ(client_.count(kRelease), 1);
}

TEST_F(NodeTest, APodKeepsACopyThatCannotBeClaimed) {
  ASSERT_TRUE(publish().is_ok());
  client_.on("POST /v1/stagings", 404, R"({"error": {"kind": "not_found", "what": "gone", "hint": ""}})");
  EXPECT_TRUE(publish().is_ok());
  EXPECT_THAT(said_.back(), HasSubstr("keeps dataset imagenet, perhaps without a lease: gone"));
  client_.on("GET /v1/datasets", 200, R"({"datasets": []})");
  EXPECT_TRUE(publish().is_ok());
  EXPECT_THAT(said_.back(), HasSubstr("its copy is not in the cache any more"));
}

TEST_F(NodeTest, ThePodsEventsSayThatItsCopyWasNotComparedWithTheSource) {
  follows(
      {{R"({"event": "done", "result": {"datasets": [{"path": "/cache/1", "unchecked": "v is lost"}]}})"}});
  const Status status = publish();
  EXPECT_EQ(status.code, Code::Aborted);
  EXPECT_EQ(status.sentence,
            "imagenet: warning: the copy was not compared with its source: v is lost; it is "
            "mounted nevertheless");
  EXPECT_THAT(said_.back(), HasSubstr("v is lost"));
  EXPECT_TRUE(publish().is_ok());
  EXPECT_EQ(mounter_.mounted["/pods/1/mount"], "/cache/1");
}

TEST_F(NodeTest, RefusesATargetMountedByAnotherProgram) {
  mounter_.places["/pods/1/mount"] = Place::Something;
  EXPECT_EQ(publish().code, Code::FailedPrecondition);
  EXPECT_THAT(client_.sent, IsEmpty());
}

TEST_F(NodeTest, WaitsForADaemonThatIsRestarted) {
  client_.is_away = true;
  on_sleep_ = [this] { client_.is_away = false; };
  EXPECT_TRUE(publish().is_ok());
  follows({{kQueued}, {}, {kDone}});
  mounter_.places.clear();
  EXPECT_TRUE(publish().is_ok()) << "the new daemon does not know the job: it is asked again";
  EXPECT_EQ(client_.count("POST /v1/stagings"), 4);
}

TEST_F(NodeTest, ReportsAnUnavailableDaemonQuickly) {
  client_.is_away = true;
  const SteadyTime began = clock_.now;
  const Status status = publish();
  EXPECT_EQ(status.code, Code::Unavailable);
  EXPECT_LT(clock_.now - began, std::chrono::seconds(15));
}

TEST_F(NodeTest, PassesTheReasonOfAFailureOn) {
  follows({{R"({"event": "failed", "error": {"kind": "no_space", "what": "too large", "hint": "evict"}})"}});
  const Status status = publish();
  EXPECT_EQ(status.code, Code::ResourceExhausted);
  EXPECT_EQ(status.sentence, "too large - evict");
}

TEST_F(NodeTest, ReleasesTheLeaseIfTheMountFails) {
  mounter_.fails = true;
  EXPECT_EQ(publish().code, Code::Internal);
  EXPECT_EQ(client_.count(kRelease), 1);
}

constexpr char kSend[] = "POST /v1/outputs/run7/send";

TEST_F(NodeTest, MountsAnOutputWritableAndHasItSentWhenThePodEnds) {
  client_.on(kSend, 200, R"({"accepted": true})");
  const auto request = request_for_output("run7");
  ASSERT_TRUE(node_.publish(request, call()).is_ok());
  EXPECT_TRUE(node_.publish(request, call()).is_ok()) << "repeated";
  EXPECT_EQ(mounter_.mounted["/pods/1/mount"], "/out/run7");
  EXPECT_EQ(mounter_.places["/pods/1/mount"], Place::Output);
  EXPECT_EQ(client_.count("POST /v1/stagings"), 0);
  EXPECT_EQ(publish("imagenet").code, Code::AlreadyExists) << "a volume is one of them";
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_EQ(client_.count(kSend), 1);
}

TEST_F(NodeTest, UnmountsAnOutputEvenIfItCannotBeSent) {
  ASSERT_TRUE(node_.publish(request_for_output("run7"), call()).is_ok());
  client_.is_away = true;
  EXPECT_TRUE(node_.publish(request_for_output("run7"), call()).is_ok());
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_TRUE(mounter_.places.empty());
}

TEST_F(NodeTest, GivesNoOutputToAnotherNamespace) {
  EXPECT_EQ(node_.publish(request_for_output("private"), call()).code, Code::PermissionDenied);
  EXPECT_TRUE(mounter_.mounted.empty());
}

TEST_F(NodeTest, AnUnpublishCallMayBeRepeated) {
  ASSERT_TRUE(publish().is_ok());
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_TRUE(mounter_.places.empty());
  EXPECT_EQ(client_.count(kRelease), 2);
}

TEST_F(NodeTest, UnmountsAPodsVolumeWithoutTheDaemon) {
  ASSERT_TRUE(publish().is_ok());
  client_.is_away = true;
  EXPECT_TRUE(unpublish().is_ok());
  EXPECT_TRUE(mounter_.places.empty());
}

TEST_F(NodeTest, ReleasesTheLeasesOfDeletedPods) {
  const TemporaryFolder kubelet;
  kubelet.write("pods/1/volumes/kubernetes.io~csi/data/vol_data.json",
                R"({"driverName": "stage.spark-stage.io", "volumeHandle": "csi-1f"})");
  ASSERT_TRUE(node_.reconcile(kubelet.path));
  EXPECT_EQ(client_.count(kRelease), 0);
  std::filesystem::remove_all(kubelet.path / "pods/1/volumes");
  ASSERT_TRUE(node_.reconcile(kubelet.path));
  EXPECT_EQ(client_.count(kRelease), 1);
}

TEST_F(NodeTest, KeepsAllLeasesWhileThePodsAreUnknown) {
  const TemporaryFolder kubelet;
  EXPECT_FALSE(node_.reconcile(kubelet.path));
  EXPECT_EQ(client_.count(kRelease), 0);
}

TEST_F(NodeTest, ReportsTheSpaceOfAMountedVolume) {
  ASSERT_TRUE(publish().is_ok());
  EXPECT_EQ(node_.usage("csi-1f", "/pods/1/mount")->bytes, 100);
  EXPECT_EQ(node_.usage("csi-1f", "/pods/2/mount").error().kind, Errc::NotFound);
  EXPECT_EQ(node_.usage("", "/pods/1/mount").error().kind, Errc::Invalid);
  EXPECT_EQ(node_.usage("csi-1f", "").error().kind, Errc::Invalid);
  EXPECT_EQ(node_.usage("csi-1f", "some/path").error().kind, Errc::NotFound) << "no volume can be there";
}

}  // namespace
}  // namespace spark::csi
