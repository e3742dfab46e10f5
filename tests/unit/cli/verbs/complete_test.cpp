// Completions for a shell; tests/install tests the shells themselves
#include <gtest/gtest.h>

#include <fstream>

#include "base/text.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Complete : public ::testing::Test {
 protected:
  std::vector<std::string> offered(std::vector<std::string> words) {
    program.out.str("");
    words.insert(words.begin(), {"complete", "--"});
    EXPECT_EQ(program.run(words), 0) << program.errors();
    return split(trim(program.output()), '\n');
  }
  bool offers(const std::vector<std::string>& words, const std::string& wanted) {
    const auto all = offered(words);
    return std::find(all.begin(), all.end(), wanted) != all.end();
  }
  using Words = std::vector<std::string>;
  Program program;
};

TEST_F(Complete, OffersVerbsAndTheirSubcommands) {
  EXPECT_TRUE(offers({""}, "stage"));
  EXPECT_TRUE(offers({"--config", "a.yaml", ""}, "doctor"));
  EXPECT_FALSE(offers({""}, "complete"));
  EXPECT_EQ(offered({"volumes", ""}), (Words{"up", "down", "publish", "take", "format"}));
}

TEST_F(Complete, OffersTheOptionsOfTheVerb) {
  EXPECT_TRUE(offers({"stage", "-"}, "--lease"));
  EXPECT_FALSE(offers({"ls", "-"}, "--lease"));
  EXPECT_TRUE(offers({"-"}, "--version"));
}

TEST_F(Complete, OffersFilesWhereFilesBelong) {
  EXPECT_EQ(offered({"--config", ""}), Words{":files"});
  EXPECT_EQ(offered({"copy", ""}), Words{":files"});
  EXPECT_EQ(offered({"run", "imagenet", "--", ""}), Words{":files"});
  EXPECT_EQ(offered({"stage", "--lease", ""}), Words{""});
}

TEST_F(Complete, OffersTheChoicesOfAnOption) {
  EXPECT_EQ(offered({"copy", "--io", ""}), (Words{"auto", "io_uring", "threads"}));
  EXPECT_EQ(offered({"volumes", "format", "--type", ""}), (Words{"ext4", "xfs"}));
  EXPECT_EQ(offered({"bench", "report", "--format", ""}), (Words{"text", "markdown", "json"}));
  EXPECT_TRUE(offers({"bench", "--scenario", "shards", "--scenario", ""}, "stagecopy"));
  EXPECT_EQ(offered({"bench", "--runs", ""}), Words{":files"});
}

TEST_F(Complete, OffersFilesBesideTheVerbsOfBench) {
  EXPECT_EQ(offered({"bench", ""}), (Words{"demand", "report", "compare", "merge", "list", ":files"}));
  EXPECT_EQ(offered({"bench", "list", ""}), Words{""});
  EXPECT_TRUE(offers({"bench", "report", ""}, "last"));
}

TEST_F(Complete, OffersNamesThatTheDaemonHas) {
  program.client.answer("GET /v1/config", 200,
                        R"({"volumes": {"rosa": {}, "nas": {}}, "datasets": {"imagenet": {}},
                            "outputs": {"run7": {}}})");
  program.client.answer(
      "GET /v1/datasets", 200,
      R"({"datasets": [{"name": "llama", "leases": [{"id": "3ee4d2ad"}]}, {"name": "models"}]})");
  EXPECT_EQ(offered({"wait", "nas", ""}), (Words{"nas", "rosa"}));
  EXPECT_EQ(offered({"status", ""}), (Words{"nas", "rosa"}));
  EXPECT_EQ(offered({"latest", ""}), Words{"run7"});
  EXPECT_EQ(offered({"stage-out", ""}), (Words{":files", "run7"}));
  EXPECT_EQ(offered({"volumes", "up", ""}), (Words{"nas", "rosa"}));
  EXPECT_EQ(offered({"run", ""}), Words{"imagenet"});
  EXPECT_EQ(offered({"evict", ""}), (Words{"llama", "models"}));
  EXPECT_EQ(offered({"release", ""}), Words{"3ee4d2ad"});
  program.client.answer("GET /v1/jobs", 200,
                        R"({"jobs": [{"id": "6", "state": "done"}, {"id": "7", "state": "running"}]})");
  EXPECT_EQ(offered({"cancel", ""}), Words{"7"});
  EXPECT_EQ(offered({"wait", "--job", ""}), Words{"7"});
}

TEST_F(Complete, HeedsTheConfigurationOnTheLine) {
  const test::TempFolder folder;
  const std::string file = folder.path() / "a.yaml";
  std::ofstream(file) << "version: 1\nvolumes: {nas: {nfs: '10.0.0.1:/a', mount: /mnt/a}}\n";
  EXPECT_EQ(offered({"--config", file, "wait", ""}), Words{"nas"});
  EXPECT_EQ(offered({"wait", "--config", file, ""}), Words{"nas"});
}

TEST_F(Complete, IsSilentWithoutADaemonAndConfiguration) {
  EXPECT_EQ(offered({"stage", ""}), Words{""});
  EXPECT_EQ(program.errors(), "");
}

}  // namespace
}  // namespace spark::cli
