// `verify` of datasets whose folder is adopted.
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

TEST_F(DatasetsTest, AnAdoptedFolderIsReadWithTheCopyOfItsDatasetOrAlone) {
  for (const char* name : {"imagenet", "models"}) settings.datasets[name].adopt = true;
  worker.on("verify", R"(echo '{"result": {"dataset": "a", "bytes": 5, "files": 1, "seconds": 0.5}}')");
  worker.on("verify-adopted",
            note_request("adopted.log") +
                R"(echo '{"result": {"dataset": "x", "bytes": 7, "files": 2, "seconds": 1}}')");
  start();
  const auto alone = datasets->upkeep().verify("models", false);
  ASSERT_TRUE(alone) << alone.error().message();
  ASSERT_TRUE(ends(*alone));
  const auto result_of = [](const std::shared_ptr<Job>& job) {
    const json::object event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object() : *result;
  };
  const json::object folder = result_of(*alone);
  EXPECT_EQ(folder.at("copy"), false);
  EXPECT_EQ(folder.at("bytes"), 7);
  EXPECT_EQ(worker.calls("verify"), 0);
  EXPECT_THAT(text_of("adopted.log"), HasSubstr(R"("path":"/data/models")"));
  const auto both = datasets->upkeep().verify("imagenet", false);
  ASSERT_TRUE(both);
  ASSERT_TRUE(ends(*both));
  EXPECT_EQ(result_of(*both).at("copy"), true);
  EXPECT_EQ(result_of(*both).at("adopted").at("files"), 2);
  EXPECT_EQ(worker.calls("verify"), 1);
  worker.on("verify-adopted",
            R"(echo '{"error": {"kind": "mismatch", "what": "x has other content", "hint": ""}}')");
  const auto damaged = datasets->upkeep().verify("models", false);
  ASSERT_TRUE(ends(*damaged));
  EXPECT_EQ(kind_of(*damaged), "mismatch");
}

TEST_F(DatasetsTest, ADamagedCopyDoesNotKeepTheAdoptedFolderFromBeingRead) {
  settings.datasets["imagenet"].adopt = true;
  worker.on("verify", R"(echo '{"error": {"kind": "mismatch", "what": "the copy differs", "hint": ""}}')");
  worker.on("verify-adopted",
            note_request("adopted.log") +
                R"(echo '{"error": {"kind": "mismatch", "what": "/secret/f differs", "hint": ""}}')");
  start();
  const auto told_by = [](const std::shared_ptr<Job>& job) {
    const json::object event = job->final_event();
    return json::serialize(event.at("error"));
  };
  const auto by_root = datasets->upkeep().verify("imagenet", true);
  ASSERT_TRUE(by_root);
  ASSERT_TRUE(ends(*by_root));
  EXPECT_THAT(text_of("adopted.log"), HasSubstr(R"("sha256":true)"));
  EXPECT_EQ(kind_of(*by_root), "mismatch");
  EXPECT_THAT(told_by(*by_root), HasSubstr("the copy differs; /secret/f differs"));
  const auto by_member = datasets->upkeep().verify("imagenet", false, {"alice", 1000});
  ASSERT_TRUE(ends(*by_member));
  EXPECT_THAT(told_by(*by_member), testing::Not(HasSubstr("/secret"))) << "only root may list the folder";
  EXPECT_THAT(told_by(*by_member), HasSubstr("journalctl"));
}

}  // namespace
}  // namespace spark::datasets
