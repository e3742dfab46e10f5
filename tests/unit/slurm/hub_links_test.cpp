#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

extern "C" {
#include "slurm/environment.h"
}

namespace spark {
namespace {

namespace fs = std::filesystem;

class HubLinksTest : public testing::Test {
 protected:
  ~HubLinksTest() override { free_staged(&staged_); }
  // Returns the folder; empty: none was made.
  std::string make(const std::string& datasets, const fs::path& temporary) {
    free_staged(&staged_);
    Progress progress{};
    const std::string done = R"({"event":"done","result":{"datasets":[)" + datasets + "]}}";
    EXPECT_EQ(json_read_event(done.c_str(), &progress, &staged_, &failure_), EventDone);
    char folder[MostHubFolder];
    EXPECT_EQ(make_hub_links(&staged_, temporary.c_str(), folder, &failure_), 0) << failure_.what;
    EXPECT_EQ(has_hub_links(&staged_), *folder != '\0');
    return folder;
  }
  static std::string model(const std::string& cache, const std::string& name) {
    return R"({"path":")" + cache + R"(/s","hub_cache":")" + cache + R"(","hub_folder":")" + name + R"("})";
  }
  spark::test::TempFolder temporary_;
  StagedList staged_{};
  Failure failure_{};
};

TEST_F(HubLinksTest, APrivateFolderLeadsToTheModels) {
  const fs::path folder =
      make(model("/c/a/1", "models--o--a") + "," + model("/c/b/7", "models--o--b"), temporary_.path());
  EXPECT_EQ(folder.parent_path(), temporary_.path());
  EXPECT_TRUE(is_hub_folder(folder.c_str()));
  EXPECT_FALSE(is_hub_folder("/home/alice/spark-stage-hub"));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::read_symlink(folder / "models--o--a"), "/c/a/1/models--o--a");
  EXPECT_EQ(fs::read_symlink(folder / "models--o--b"), "/c/b/7/models--o--b");
}

TEST_F(HubLinksTest, DatasetsThatAreNoSuchModelsHaveNone) {
  EXPECT_EQ(make(R"({"path":"/c/1"})", temporary_.path()), "");
  EXPECT_EQ(make(model("/c/1", ""), temporary_.path()), "");
}

TEST_F(HubLinksTest, IsInTmpIfTheJobsTemporaryFolderIsNotThere) {
  const std::string folder = make(model("/c/a/1", "models--o--a"), temporary_.path() / "gone");
  EXPECT_EQ(folder.substr(0, 5), "/tmp/");
  remove_hub_links(folder.c_str());
}

TEST_F(HubLinksTest, TwoRevisionsOfOneModelHaveNoLink) {
  const std::string both = model("/c/a/1", "models--o--a") + "," + model("/c/b/7", "models--o--a");
  EXPECT_EQ(make(both, temporary_.path()), "");
  const fs::path folder = make(both + "," + model("/c/d/1", "models--o--d"), temporary_.path());
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder / "models--o--a")));
  EXPECT_TRUE(fs::is_symlink(folder / "models--o--d"));
  const fs::path once =
      make(model("/c/a/1", "models--o--a") + "," + model("/c/a/1", "models--o--a"), temporary_.path());
  EXPECT_TRUE(fs::is_symlink(once / "models--o--a"));
}

TEST_F(HubLinksTest, ANameCanNotLeadOutOfTheFolder) {
  EXPECT_EQ(make(model("/c/a/1", "../models--o--a"), temporary_.path()), "");
}

TEST_F(HubLinksTest, IsRemovedWithTheNotesOfTheHubAndKeepsWhatTheJobWrote) {
  const std::string one = model("/c/a/1", "models--o--a");
  const fs::path clean = make(one, temporary_.path());
  fs::create_directories(clean / ".locks/models--o--a");
  std::ofstream(clean / ".locks/models--o--a/x.lock");
  std::ofstream(clean / "version.txt");
  EXPECT_EQ(remove_hub_links(clean.c_str()), 0);
  EXPECT_FALSE(fs::exists(clean));
  const fs::path used = make(one, temporary_.path());
  fs::create_directories(used / "models--o--mine");
  EXPECT_EQ(remove_hub_links(used.c_str()), -1) << "the user is told";
  EXPECT_TRUE(fs::exists(used / "models--o--mine"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(used / "models--o--a")));
  EXPECT_EQ(remove_hub_links((temporary_.path() / "gone").c_str()), 0);
}

// A job may put a link in place of what is removed.
TEST_F(HubLinksTest, FollowsNothingWhenItRemoves) {
  fs::create_directories(temporary_.path() / "precious/inner");
  std::ofstream(temporary_.path() / "precious/inner/file");
  const fs::path folder = make(model("/c/a/1", "models--o--a"), temporary_.path());
  fs::create_directory_symlink(temporary_.path() / "precious", folder / ".locks");
  remove_hub_links(folder.c_str());
  EXPECT_TRUE(fs::exists(temporary_.path() / "precious/inner/file"));
  fs::create_directory_symlink(temporary_.path() / "precious", temporary_.path() / "link");
  remove_hub_links((temporary_.path() / "link").c_str());
  EXPECT_TRUE(fs::exists(temporary_.path() / "precious/inner/file"));
}

// A folder that a group of the user's may write to: /scratch/PROJECT, root:PROJECT, 2770.
TEST_F(HubLinksTest, IsRemovedWhereTheUserComesByAFurtherGroup) {
  constexpr uid_t kUser = 4000;
  constexpr gid_t kProject = 5000;
  if (::geteuid() != 0) SPARK_SKIP("only root removes the folder of another user");
  const fs::path scratch = temporary_.path() / "scratch";
  fs::create_directory(scratch);
  fs::permissions(temporary_.path(), fs::perms(0755));
  const fs::path folder = make(model("/c/a/1", "models--o--a"), scratch);
  ASSERT_EQ(::chown(folder.c_str(), kUser, kUser), 0);
  ASSERT_EQ(::chown(scratch.c_str(), 0, kProject), 0);
  fs::permissions(scratch, fs::perms(02770));
  const Rights stranger{kUser, kUser, nullptr, 0};
  remove_hub_links_as(&stranger, folder.c_str());
  EXPECT_TRUE(fs::exists(folder)) << "with the user's rights, not with root's";
  const Rights user{kUser, kUser, &kProject, 1};
  const int groups = ::getgroups(0, nullptr);
  remove_hub_links_as(&user, folder.c_str());
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(::getgroups(0, nullptr), groups);
  EXPECT_EQ(::setfsuid(static_cast<uid_t>(-1)), 0) << "root again";
}

// A step's variables.
class HubStepTest : public testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;
  Variables variables_;
  const Environment environment_{set, get, unset, &variables_};

  static int set(void* step, const char* name, const char* value, Failure*) {
    (*static_cast<Variables*>(step))[name] = value;
    return 0;
  }
  static bool get(void* step, const char* name, char* value, std::size_t size) {
    const auto found = static_cast<Variables*>(step)->find(name);
    if (found == static_cast<Variables*>(step)->end()) return false;
    value[found->second.copy(value, size - 1)] = '\0';
    return true;
  }
  static void unset(void* step, const char* name) { static_cast<Variables*>(step)->erase(name); }
  // As a step in a batch script finds them.
  void be_in_a_script() {
    Failure failure{};
    ASSERT_EQ(set_hub_variables(&environment_, "/tmp/spark-stage-hub-x", &failure), 0);
    ASSERT_EQ(variables_.at("HF_HUB_OFFLINE"), "1");
  }
};

TEST_F(HubStepTest, InheritsNothingOfItsBatchScript) {
  be_in_a_script();
  drop_inherited_hub_links(&environment_);
  EXPECT_TRUE(variables_.empty());
  EXPECT_TRUE(wants_hub_links(&environment_));
}

TEST_F(HubStepTest, ThatDoesWithoutHasNoneOfItsBatchScript) {
  for (const auto& [name, value] : Variables{{"SPARK_STAGE_HUB_CACHE", "off"}, {"SLURM_CONTAINER", "/c"}}) {
    variables_.clear();
    be_in_a_script();
    variables_[name] = value;
    drop_inherited_hub_links(&environment_);
    EXPECT_FALSE(wants_hub_links(&environment_)) << name;
    EXPECT_EQ(variables_, (Variables{{name, value}}));
  }
}

TEST_F(HubStepTest, WhatTheJobHasSetStays) {
  be_in_a_script();
  variables_["HF_HUB_CACHE"] = "/mine";
  variables_["HF_HUB_OFFLINE"] = "0";
  drop_inherited_hub_links(&environment_);
  EXPECT_EQ(variables_, (Variables{{"HF_HUB_CACHE", "/mine"}, {"HF_HUB_OFFLINE", "0"}}));
  EXPECT_FALSE(wants_hub_links(&environment_));
  variables_.erase("HF_HUB_CACHE");
  EXPECT_TRUE(wants_hub_links(&environment_));
  Failure failure{};
  ASSERT_EQ(set_hub_variables(&environment_, "/tmp/spark-stage-hub-y", &failure), 0);
  EXPECT_EQ(variables_.at("HF_HUB_OFFLINE"), "0");
  EXPECT_FALSE(variables_.contains("SPARK_HUB_OFFLINE_IS_OURS"));
}

TEST_F(HubStepTest, AnOfflineThatNobodyMarkedIsTheJobs) {
  variables_["HF_HUB_OFFLINE"] = "1";
  drop_inherited_hub_links(&environment_);
  EXPECT_EQ(variables_, (Variables{{"HF_HUB_OFFLINE", "1"}}));
}

}  // namespace
}  // namespace spark
