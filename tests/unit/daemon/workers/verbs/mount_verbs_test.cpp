// The worker's mount on a real file system.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "daemon/mounts/libmount_mounter.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::workers {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class MountVerb : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("a mount on a real file system: " + why);
  }
  void TearDown() override { std::ignore = mounts::unmount(point_, mounts::Unmount::Plain); }

  // A file is in the place of the folder that announces the writer.
  void make(const std::string& type) {
    test::make_image(folder_ / "image", type == "xfs" ? 320 << 20 : 32 << 20, {"mkfs." + type});
    loop_.emplace(folder_ / "image");
    request_ = {loop_->path(), point_, type, false, {"noatime"}};
    ASSERT_TRUE(mounts::mount(request_));
    std::ofstream(point_ / ".spark-stage") << "a file";
    ASSERT_TRUE(mounts::unmount(point_, mounts::Unmount::Plain));
  }
  Result<json::object> mount() {
    return mount_verb({{"mount", to_message(request_)}, {"host", "spark1"}}, {});
  }

  test::TempFolder folder_;
  fs::path point_ = folder_ / "point";
  std::optional<test::LoopDevice> loop_;
  mounts::MountRequest request_;
};

TEST_F(MountVerb, AnExt4ThatCannotBeAnnouncedIsMountedWithAWarning) {
  ASSERT_NO_FATAL_FAILURE(make("ext4"));
  const auto mounted = mount();
  ASSERT_TRUE(mounted) << mounted.error().message();
  EXPECT_THAT(get_string(*mounted, "warning").value_or(""), HasSubstr("move it away"));
}

TEST_F(MountVerb, AnXfsThatCannotBeAnnouncedIsNotMountedAndTheWayToTheFileIsNamed) {
  ASSERT_NO_FATAL_FAILURE(make("xfs"));
  const auto mounted = mount();
  ASSERT_FALSE(mounted);
  EXPECT_EQ(mounted.error().kind, Errc::Refused);
  EXPECT_THAT(mounted.error().hint, HasSubstr("`sudo mount " + request_.source));
}

}  // namespace
}  // namespace spark::workers
