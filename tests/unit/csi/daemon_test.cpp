#include "csi/daemon.hpp"

#include "tests/unit/csi/fixture.hpp"

namespace spark::csi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CsiDaemonTest : public testing::Test {
 protected:
  Result<std::filesystem::path> allowed(const std::string& dataset, const std::string& pod_namespace) {
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
  const auto folder = [&](const std::string& output) {
    return daemon_.check_allowed(*read_publication(request_for_output(output)));
  };
  EXPECT_EQ(folder("run7"), "/out/run7");
  EXPECT_EQ(folder("private").error().kind, Errc::Denied)
      << "no namespace may write there unless it is listed";
  EXPECT_EQ(folder("run8").error().kind, Errc::NotFound);
  EXPECT_THAT(folder("run8").error().message(), HasSubstr("did you mean 'run7'?"));
  EXPECT_EQ(daemon_.outputs()->at("private"), "/out/private");
}

TEST_F(CsiDaemonTest, StagesForTheVolumeAndFollowsTheJobToItsEnd) {
  client_.on("GET /v1/config", 200, kConfig);
  client_.on("POST /v1/stagings", 202, R"({"id": "7", "key": "7-1f"})");
  const auto stage = [this](const std::vector<std::string>& lines, bool goes_on = true) {
    client_.on_stream("/v1/jobs/7-1f/events", {lines});
    return daemon_.stage(*read_publication(request_for("imagenet")), Duration(1),
                         [goes_on](const json::object&) { return goes_on; });
  };
  const std::string copying = R"({"event": "progress", "phase": "copying"})";
  EXPECT_EQ((**stage({copying, R"({"event": "done", "result": {"datasets": [{"path": "/c/1"}]}})"})).path,
            "/c/1");
  EXPECT_THAT(
      client_.bodies,
      testing::Contains(
          R"({"datasets":["imagenet"],"job":{"system":"csi","id":"csi-1f","user":"team-b/train-0"},"wait_s":null})"));
  const auto failed =
      stage({R"({"event": "failed", "error": {"kind": "no_space", "what": "w", "hint": ""}})"});
  EXPECT_EQ(failed.error().kind, Errc::NoSpace);
  EXPECT_FALSE(stage({copying}, false)->has_value()) << "the caller had enough";
  EXPECT_EQ(stage({copying}).error().kind, Errc::Unavailable) << "the connection broke";
  EXPECT_EQ(stage({}).error().kind, Errc::Unavailable) << "the daemon was restarted";
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
  EXPECT_THAT(*daemon_.leased_volumes(), ElementsAre(testing::Pair("csi-1f", "imagenet")));
}

}  // namespace
}  // namespace spark::csi
