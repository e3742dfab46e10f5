// Publishing on real file systems, and the file that records the published state.
#include "daemon/mounts/publish.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "tests/support/loop_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class PublishedFile : public testing::Test {
 protected:
  test::TempFolder folder_;
  fs::path root_ = folder_ / "";
  fs::path file_ = folder_ / kPublishedFile;
};

TEST_F(PublishedFile, IsReadAsItWasWritten) {
  ASSERT_TRUE(write_published(root_, {7, "spark1", "2026-11-22T05:00:00Z"}));
  const auto read = read_published(root_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->generation, 7u);
  EXPECT_EQ((*read)->host, "spark1");
  EXPECT_EQ((*read)->at, "2026-11-22T05:00:00Z");
}

TEST_F(PublishedFile, AMissingOrInvalidFileMeansNothingWasPublished) {
  EXPECT_EQ(*read_published(root_), std::nullopt);
  fs::create_directory(file_.parent_path());
  for (const char* text :
       {"", "{", "[]", R"({"generation": 0})", R"({"generation": "7"})", R"({"host": "a"})"}) {
    std::ofstream(file_) << text;
    EXPECT_EQ(*read_published(root_), std::nullopt) << text;
  }
  std::ofstream(file_) << R"({"generation": 7, "host": ")" << std::string(10'000, 'x') << "\"}";
  EXPECT_EQ(*read_published(root_), std::nullopt) << "longer than any of ours";
}

TEST_F(PublishedFile, LinksAndFifosOnAHostileFileSystemAreNotFollowed) {
  ASSERT_TRUE(write_published(folder_ / "", {7, "elsewhere", ""}));
  const fs::path hostile = folder_ / "hostile";
  fs::create_directory(hostile);
  fs::create_symlink(folder_ / ".spark-stage", hostile / ".spark-stage");
  EXPECT_EQ(*read_published(hostile), std::nullopt);
  EXPECT_EQ(write_published(hostile, {8, "", ""}).error().kind, Errc::Refused);
  EXPECT_EQ((*read_published(root_))->generation, 7u);
  ASSERT_TRUE(announce_writer(root_, "spark1", {}));
  EXPECT_FALSE(is_writer_announced(hostile));
  EXPECT_FALSE(withdraw_writer(hostile));
  EXPECT_TRUE(*is_writer_announced(root_));
  ASSERT_TRUE(withdraw_writer(root_));
  EXPECT_FALSE(*is_writer_announced(root_));
  fs::remove(hostile / ".spark-stage");
  fs::create_directory(hostile / ".spark-stage");
  ASSERT_EQ(::mkfifo((hostile / kPublishedFile).c_str(), 0600), 0);
  EXPECT_EQ(*read_published(hostile), std::nullopt) << "or hangs there";
}

class Publishing : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_loop_mounts();
    if (!why.empty()) SPARK_SKIP("publishing on a real file system: " + why);
    const std::string type = GetParam().front().substr(5);
    test::make_image(folder_ / "image", type == "xfs" ? 320 << 20 : 32 << 20, GetParam());
    loop_.emplace(folder_ / "image");
    MountRequest request{loop_->path(), point_, type, false, {"noatime", "nodev"}};
    ASSERT_TRUE(mounts::mount(request));
  }
  void TearDown() override { std::ignore = mounts::unmount(point_, Unmount::Plain); }

  Result<Closed> publish(AfterPublish then = AfterPublish::ReadOnly) {
    return mounts::publish(mounted_there(), then);
  }
  Result<> reopen() { return make_writable(mounted_there()); }
  Remounted mounted_there() {
    return {point_,   loop_->path(),
            "spark1", SystemClock().wall(),
            false,    [this](std::uint64_t) { return ++checks_ == fails_ ? passing_ : allowed_; }};
  }
  bool can_write() const {
    return UniqueFd(::open((point_ / "new").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644)).get() >= 0;
  }
  Mount mounted() const {
    const auto table = read_mount_table({});
    return *mounted_at(*table, point_);
  }
  // The file's content on the disk, as another host sees it.
  std::string text_on_the_disk(const std::string& name) {
    const fs::path copy = folder_ / "copy", elsewhere = folder_ / "elsewhere";
    fs::copy_file(folder_ / "image", copy, fs::copy_options::overwrite_existing);
    const test::LoopDevice other(copy);
    const std::string type = GetParam().front().substr(5);
    std::vector<std::string> options;
    if (type == "xfs") options.emplace_back("nouuid");
    EXPECT_TRUE(mounts::mount({other.path(), elsewhere, type, true, options}));
    const auto text = read_file(elsewhere / name);
    EXPECT_TRUE(mounts::unmount(elsewhere, Unmount::Plain));
    return text ? *text : "";
  }

  test::TempFolder folder_;
  fs::path point_ = folder_ / "point";
  std::optional<test::LoopDevice> loop_;
  Result<> allowed_, passing_;
  int checks_ = 0, fails_ = 0;  // the check with this number has another answer
};

TEST_P(Publishing, MakesAllWritesVisibleToReadersAndEndsWriting) {
  std::ofstream(point_ / "file") << "first";
  const auto published = publish();
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_EQ(published->published.generation, 1u);
  EXPECT_FALSE(can_write());
  EXPECT_TRUE(is_read_only(mounted()));
  EXPECT_TRUE(has_option(mounted().options, "noatime") && has_option(mounted().options, "nodev"));
  const auto superblock = read_superblock(loop_->path());
  ASSERT_TRUE(superblock);
  EXPECT_FALSE(superblock->being_written);
  EXPECT_EQ(superblock->stamp, published->stamp);
  EXPECT_EQ(text_on_the_disk("file"), "first");
  EXPECT_THAT(text_on_the_disk(kPublishedFile), HasSubstr("\"generation\":1"));
}

TEST_P(Publishing, AReopenedMountPublishesTheNextGeneration) {
  ASSERT_TRUE(publish());
  const auto writable = reopen();
  ASSERT_TRUE(writable) << writable.error().message();
  EXPECT_TRUE(has_option(mounted().options, "noatime") && has_option(mounted().options, "nodev"));
  EXPECT_TRUE(read_superblock(loop_->path())->being_written) << "a reader would not notice what comes now";
  std::ofstream(point_ / "file") << "second";
  const auto stamp = read_superblock(loop_->path())->stamp;
  EXPECT_EQ(publish()->published.generation, 2u);
  EXPECT_EQ(text_on_the_disk("file"), "second");
  EXPECT_NE(read_superblock(loop_->path())->stamp, stamp) << "no reader would notice";
}

TEST_P(Publishing, LeavesTheMountWritableIfRequested) {
  const auto published = publish(AfterPublish::Writable);
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_TRUE(can_write());
}

TEST_P(Publishing, IsRefusedWhileAFileIsOpenForWriting) {
  const UniqueFd open(::open((point_ / "busy").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  const auto refused = publish();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().what, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_TRUE(can_write());
}

TEST_P(Publishing, ARefusedPublicationLeavesTheGenerationAsItWas) {
  const auto refuse = [this] {
    const UniqueFd open(::open((point_ / "busy").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    EXPECT_FALSE(publish());
    EXPECT_TRUE(*is_writer_announced(point_));
  };
  refuse();
  EXPECT_EQ(*read_published(point_), std::nullopt);
  const auto first = publish();
  ASSERT_TRUE(first && reopen());
  EXPECT_EQ(first->published.generation, 1u);
  refuse();
  EXPECT_EQ(*read_published(point_), first->published);
}

TEST_P(Publishing, ChangesNothingIfTheLastLookForbidsIt) {
  allowed_ = fail(Errc::Unavailable, "another host has it by now");
  EXPECT_EQ(publish().error().kind, Errc::Unavailable);
  EXPECT_TRUE(can_write());
  EXPECT_EQ(*read_published(point_), std::nullopt);
  allowed_ = Result<>();
  ASSERT_TRUE(publish());
  allowed_ = fail(Errc::Unavailable, "another host has it by now");
  EXPECT_EQ(reopen().error().kind, Errc::Unavailable);
  EXPECT_FALSE(can_write());
}

TEST_P(Publishing, AWriterGoesOnOnceItsTargetAnswersAgain) {
  fails_ = 2;
  passing_ = fail(Errc::TimedOut, "no answer");
  const auto published = publish(AfterPublish::Writable);
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_EQ(published->not_writable, "");
  EXPECT_EQ(checks_, 3);
  EXPECT_TRUE(can_write());
}

TEST_P(Publishing, AWriterThatMayNotGoOnIsPublished) {
  fails_ = 2;
  passing_ = fail(Errc::Refused, "another host has it by now");
  const auto published = publish(AfterPublish::Writable);
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_THAT(published->not_writable, HasSubstr("another host has it by now"));
  EXPECT_FALSE(can_write());
  EXPECT_TRUE(reopen());
}

TEST_P(Publishing, FilesOpenForReadingStayOpen) {
  std::ofstream(point_ / "file") << "first";
  const UniqueFd open(::open((point_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(publish());
  ASSERT_TRUE(reopen());
  char byte = 0;
  EXPECT_EQ(::read(open.get(), &byte, 1), 1);
}

INSTANTIATE_TEST_SUITE_P(Ext4AndXfs, Publishing,
                         testing::Values(std::vector<std::string>{"mkfs.ext4", "-q"},
                                         std::vector<std::string>{"mkfs.ext4", "-q", "-O", "mmp", "-E",
                                                                  "mmp_update_interval=1"},
                                         std::vector<std::string>{"mkfs.xfs", "-q"}));

}  // namespace
}  // namespace spark::mounts
