#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "daemon/config/model.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::workers {
namespace {

using namespace staging::test;
using testing::HasSubstr;

class CatalogVerb : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(recover_verb(request(), [](const json::object&) {}));
  }
  json::object request() const {
    config::CacheSettings settings;
    settings.path = folder_ / "cache";
    return {{"cache", to_json(settings, (folder_ / "state").native())}};
  }
  json::array warnings() const {
    const auto answer = catalog_verb(request(), {});
    EXPECT_TRUE(answer) << answer.error().message();
    return answer ? *get_array(*get_object(*answer, "usage"), "warnings") : json::array();
  }

  TempFolder folder_;
};

TEST_F(CatalogVerb, HasNoWarningWhereModesAreKeptAndClosesWhatIsOpen) {
  std::filesystem::create_directories(folder_ / "state/stage-outs");
  EXPECT_TRUE(warnings().empty());
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / "state/stage-outs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077u, 0u);
}

// As on vfat, or where a FUSE mount gives all files one mode.
TEST_F(CatalogVerb, NamesFoldersThatCannotBeClosed) {
  if (::geteuid() != 0) SPARK_SKIP("mounting needs root");
  ASSERT_TRUE(warnings().empty());  // makes them
  std::filesystem::create_directories(folder_ / "state/stage-outs");
  const pid_t child = ::fork();
  if (child == 0) {
    EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
    EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    for (const char* name : {"state/stage-outs", "cache/.trash"})
      EXPECT_EQ(::mount("none", (folder_ / name).c_str(), "tmpfs", MS_RDONLY, "mode=0755"), 0);
    const std::string all = json::serialize(warnings());
    EXPECT_THAT(all, HasSubstr("other users can read and lock what is in"));
    EXPECT_THAT(all, HasSubstr("cache/.trash"));
    EXPECT_THAT(all, HasSubstr("state/stage-outs"));
    std::fflush(stdout);
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_TRUE(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace spark::workers
