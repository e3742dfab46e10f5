// What the processes of a live view say and do beside its answers.
#include <signal.h>

#include "daemon/launch.hpp"
#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

class LivePagesTest : public LiveTest {
 protected:
  pid_t dropper_ = 0;
  std::string lease_;

  void SetUp() override {
    worker.on("drop-pages", "cat > /dev/null; echo $$ > dropper; exec sleep 1000");
    start_empty();
    const auto job = stage_now();
    ASSERT_TRUE(ends(job));
    lease_ = *get_string(dataset_of(job), "lease");
    touch("go");
    ASSERT_TRUE(run_until(context, [&] { return (dropper_ = std::atoi(text_of("dropper").c_str())) != 0; }));
    ASSERT_EQ(::kill(dropper_, 0), 0);
  }
  bool has_ended() {
    return run_until(context, [&] { return ::kill(dropper_, 0) != 0; });
  }
};

TEST_F(LivePagesTest, NoProcessDropsThemOnceTheViewHasEnded) {
  ASSERT_TRUE(datasets->leases().release(lease_));
  EXPECT_TRUE(has_ended());
}

TEST_F(LivePagesTest, NoProcessDropsThemOnceTheDaemonEnds) {
  bool has_stopped = false;
  auto stop = [&]() -> asio::awaitable<void> {
    co_await datasets->stop();
    has_stopped = true;
  };
  launch(context.get_executor(), "the daemon's end", stop());
  EXPECT_TRUE(run_until(context, [&] { return has_stopped; }));
  EXPECT_NE(::kill(dropper_, 0), 0);
}

TEST_F(LiveTest, AFileThatTheViewCantReadIsNamed) {
  worker.on("serve-view",
            "cat > /dev/null; echo '{\"progress\": {\"folder\": \"/live/imagenet\", \"can_resend\": true}}'; "
            "echo '{\"progress\": {\"view_failed\": \"a: it has an ACL\"}}'; exec sleep 1000");
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  EXPECT_TRUE(
      run_until(context, [&] { return get_string(row_of("imagenet"), "reason") == "a: it has an ACL"; }));
}

}  // namespace
}  // namespace spark::datasets
