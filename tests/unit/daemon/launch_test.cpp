// An exception in a coroutine that no other code waits for.
#include "daemon/launch.hpp"

#include <gmock/gmock.h>

#include <boost/asio/steady_timer.hpp>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark {
namespace {

using testing::HasSubstr;

class LaunchTest : public volumes::test::VolumeTest {
 protected:
  // The message of the exception that leaves the loop; empty if there is none.
  std::string what_leaves_the_loop() {
    try {
      context.run_for(std::chrono::seconds(10));
    } catch (const std::exception& failure) {
      return failure.what();
    }
    return "";
  }
};

boost::asio::awaitable<void> fail_at_once() {
  throw std::runtime_error("at once");
  co_return;
}

boost::asio::awaitable<void> fail_after_a_wait(boost::asio::io_context& context) {
  boost::asio::steady_timer timer(context, std::chrono::milliseconds(1));
  co_await timer.async_wait(kToken);
  throw std::runtime_error("after a wait");
}

boost::asio::awaitable<void> end() {
  co_return;
}

TEST_F(LaunchTest, AnExceptionIsLoggedWithTheCoroutinesNameAndEndsTheLoop) {
  log::start();
  testing::internal::CaptureStderr();
  launch(context.get_executor(), "volume x", fail_at_once());
  EXPECT_EQ(what_leaves_the_loop(), "at once");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("volume x ended with an exception: at once"));
}

TEST_F(LaunchTest, AnExceptionAfterAWaitAlsoEndsTheLoop) {
  launch(context.get_executor(), "volume x", fail_after_a_wait(context));
  EXPECT_EQ(what_leaves_the_loop(), "after a wait");
}

TEST_F(LaunchTest, ACoroutineThatReturnsNormallyEndsQuietly) {
  launch(context.get_executor(), "volume x", end());
  EXPECT_EQ(what_leaves_the_loop(), "");
}

// Otherwise its state would never change again, while the watchdog is still fed.
TEST_F(LaunchTest, AnExceptionInAVolumesCoroutineEndsTheLoop) {
  volume = std::make_shared<volumes::Volume>(
      context.get_executor(), settings, target, volumes::fake_seams(world), clock, timings,
      [](const volumes::Volume&, volumes::State) { throw std::runtime_error("a defect"); });
  volume->start();
  EXPECT_EQ(what_leaves_the_loop(), "a defect");
}

}  // namespace
}  // namespace spark
