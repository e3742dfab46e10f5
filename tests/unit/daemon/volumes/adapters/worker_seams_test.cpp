// The seams of a volume on a real host; its workers write their records at once.
#include "daemon/volumes/adapters/worker_seams.hpp"

#include <gtest/gtest.h>

#include "base/file.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark::volumes {
namespace {

// Answers only calls for records, and notes the subject of each call.
class RecordRunner final : public workers::Runner {
 public:
  asio::awaitable<Result<json::object>> run(workers::Call call, workers::Cancellation) override {
    subjects.insert(call.subject);
    if (hangs) left.insert(call.subject);
    if (hangs) co_return fail(Errc::TimedOut, call.verb);
    const std::filesystem::path file = get_string(call.request, "file").value_or("");
    if (call.verb == "forget") std::filesystem::remove(file);
    if (call.verb == "forget") co_return json::object{};
    if (call.verb != "record") co_return fail(Errc::Unsupported, call.verb);
    if (is_full) co_return fail(Errc::NoSpace, call.verb);
    std::filesystem::create_directories(file.parent_path());
    const auto written = write_file_atomically(file, json::serialize(*get_object(call.request, "content")));
    if (!written) co_return fail(written.error());
    co_return json::object{};
  }
  const std::multiset<std::string>& abandoned() const override { return left; }
  const workers::WorkerCounts& counts() const override { return counts_; }

  bool is_full = false, hangs = false;
  std::multiset<std::string> subjects, left;

 private:
  workers::WorkerCounts counts_;
};

class WorkerSeamsTest : public testing::Test {
 protected:
  Seams seams() { return worker_seams(runner, snapshot, "data", folder.path() / "volumes"); }
  Result<> save(Intent intent) {
    return await(context, seams().store.save_intent(std::move(intent)))
        .value_or(fail(Errc::Failed, "no end"));
  }

  boost::asio::io_context context;
  TemporaryFolder folder;
  SystemClock clock;
  HostSnapshot snapshot{clock};
  RecordRunner runner;
};

TEST_F(WorkerSeamsTest, ThatAVolumeIsReleasedNeedsNoRoom) {
  Intent down{false, WallTime(std::chrono::seconds(7)), "alice", false};
  ASSERT_TRUE(save(down));
  EXPECT_FALSE(seams().store.saved_intent()->is_released);
  runner.is_full = true;
  down.is_released = true;
  ASSERT_TRUE(save(down));
  const auto saved = seams().store.saved_intent();
  EXPECT_FALSE(saved->up);
  EXPECT_TRUE(saved->is_released);
  EXPECT_EQ(saved->by, "alice");
  down.is_released = false;  // mounted since, and asked down again
  EXPECT_FALSE(save(down));
  EXPECT_TRUE(save(Intent{}));
  EXPECT_TRUE(seams().store.saved_intent()->up);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "volumes"));
}

TEST_F(WorkerSeamsTest, AReleasedVolumeIsRecordedInOneStepIfNothingWasRecordedBefore) {
  ASSERT_TRUE(save(Intent{false, {}, "alice", true}));
  EXPECT_TRUE(seams().store.saved_intent()->is_released);
}

TEST_F(WorkerSeamsTest, ACallThatDoesNotUseTheDeviceSaysNothingAboutItIfItHangs) {
  runner.hangs = true;
  const Seams its = seams();
  (void)await(context, its.mounts.guard("/mnt/data", false));
  (void)await(context, its.mounts.users("/mnt/data"));
  (void)await(context, its.store.pin(FilesystemIdentity{}));
  (void)await(context, its.store.save_intent(Intent{false, {}, "alice", false}));
  (void)await(context, its.device.mounted_state("/mnt/data", {}));
  EXPECT_GT(runner.subjects.size(), 4u);
  EXPECT_FALSE(its.device.has_stuck_worker());
  (void)await(context, its.device.read_superblock("/dev/nvme7n1"));
  EXPECT_TRUE(its.device.has_stuck_worker());
}

// The folder's file system hangs: each attempt to bring the volume up would leave one more process.
TEST_F(WorkerSeamsTest, AMountPointWhoseCheckHangsIsNotCheckedAgainUntilThatHasEnded) {
  const auto guard = [&] {
    return await(context, seams().mounts.guard("/mnt/nas/data", false))
        .value_or(fail(Errc::Failed, "no end"));
  };
  runner.hangs = true;
  EXPECT_EQ(guard().error().kind, Errc::TimedOut);
  EXPECT_EQ(guard().error().kind, Errc::Unavailable);
  EXPECT_EQ(runner.left.count("mount point of volume data"), 1U);
  runner.left.clear();
  EXPECT_EQ(guard().error().kind, Errc::TimedOut);
}

}  // namespace
}  // namespace spark::volumes
