#include "csi/daemon.hpp"

#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CsiDaemonTest : public testing::Test {
 protected:
  Result<> allowed(const std::string& dataset, const std::string& pod_namespace) {
    client_.on("GET /v1/config", 200, kConfig);
    return daemon_.check_allowed(*read_publication(request_for(dataset, pod_namespace)));
  }
  FakeClient client_;
  Daemon daemon_{client_};
};

TEST_F(CsiDaemonTest, AllowsConfiguredDatasetsToTheListedNamespaces) {
  EXPECT_TRUE(allowed("imagenet", "team-b")) << "without a list all may use it";
  EXPECT_TRUE(allowed("secret", "team-a"));
  EXPECT_EQ(allowed("secret", "team-b").error().kind, Errc::Denied);
  EXPECT_THAT(allowed("secret", "").error().message(), HasSubstr("podInfoOnMount"));
  const auto unknown = allowed("imagnet", "team-a");
  EXPECT_EQ(unknown.error().kind, Errc::NotFound);
  EXPECT_THAT(unknown.error().message(), HasSubstr("did you mean 'imagenet'?"));
}

TEST_F(CsiDaemonTest, AllowsAnOutputOnlyToListedNamespaces) {
  client_.on("GET /v1/config", 200, kConfig);
  const auto folder = [this](const std::string& output) {
    return daemon_.output_folder(*read_publication(request_for_output(output)));
  };
  EXPECT_EQ(folder("run7"), "/out/run7");
  EXPECT_EQ(folder("private").error().kind, Errc::Denied)
      << "no namespace may write there unless it is listed";
  EXPECT_EQ(folder("run8").error().kind, Errc::NotFound);
  EXPECT_THAT(folder("run8").error().message(), HasSubstr("did you mean 'run7'?"));
  EXPECT_EQ(daemon_.outputs()->at("private"), "/out/private");
}

TEST_F(CsiDaemonTest, StagesForTheVolume) {
  client_.on("POST /v1/stagings", 202, R"({"id": "7", "started": "t"})");
  const auto job = daemon_.stage(*read_publication(request_for("imagenet")));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, "7");
  EXPECT_EQ(client_.bodies.back(),
            R"({"datasets":["imagenet"],"job":{"system":"csi","id":"csi-1f","user":"team-b/train-0"}})");
}

TEST_F(CsiDaemonTest, ReportsTheOutcomeOfAStaging) {
  client_.on("GET /v1/jobs/7", 200,
             R"({"started": "t", "state": "running", "progress": {"phase": "copying"}, "error": null})");
  EXPECT_FALSE(daemon_.look_at({"7", "t"})->ended);
  EXPECT_TRUE(daemon_.look_at({"7", "before"})->is_gone) << "the number is another job's by now";
  EXPECT_TRUE(daemon_.look_at({"8", "t"})->is_gone);
  client_.on(
      "GET /v1/jobs/7", 200,
      R"({"started": "t", "state": "done", "progress": null, "error": null, "result": {"datasets": [{"path": "/c/1"}]}})");
  EXPECT_EQ(**daemon_.look_at({"7", "t"})->ended, "/c/1");
  client_.on(
      "GET /v1/jobs/7", 200,
      R"({"started": "t", "state": "failed", "progress": null, "error": {"kind": "no_space", "what": "w", "hint": ""}})");
  EXPECT_EQ(daemon_.look_at({"7", "t"})->ended->error().kind, Errc::NoSpace);
}

TEST_F(CsiDaemonTest, AReleaseMayBeRepeated) {
  client_.on("DELETE /v1/leases/job%3Acsi%3Acsi-1f", 200, "{}");
  EXPECT_TRUE(daemon_.release("csi-1f"));
  EXPECT_TRUE(daemon_.release("csi-2f")) << "there is none";
  client_.is_away = true;
  EXPECT_FALSE(daemon_.release("csi-1f"));
}

TEST_F(CsiDaemonTest, FindsTheLeasesOfCsiVolumes) {
  client_.on("GET /v1/datasets", 200, listing("csi-1f", "imagenet"));
  EXPECT_THAT(*daemon_.leased_volumes(), ElementsAre("csi-1f"));
  EXPECT_THAT(*daemon_.datasets_of("csi-1f"), ElementsAre("imagenet"));
  EXPECT_TRUE(daemon_.datasets_of("csi-2f")->empty());
}

}  // namespace
}  // namespace spark::csi
