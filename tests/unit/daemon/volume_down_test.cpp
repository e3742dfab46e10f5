// How a volume is taken down, and a volume of an NFS server.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

class DownTest : public VolumeTest {
 protected:
  Result<> ask_down() {
    std::optional<Result<>> answer;
    auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.ask_down();
    };
    boost::asio::co_spawn(context, ask(*volume, answer), boost::asio::detached);
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
};

TEST_F(DownTest, UnmountsBeforeItDisconnectsAndStaysDownUntilAskedUp) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.touched.clear();
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(volume->status().state, State::Down);
  std::erase(world.touched, "probe");  // one may have been due
  EXPECT_THAT(world.touched, ElementsAre("unmount", "disconnect"));
  EXPECT_TRUE(ask_down()) << "asking again finds it down";
  volume->ask_up();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, KeepsTheVolumeWhileItIsInUseAndSaysWhy) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("python3"));
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, ADeadMountThatIsHeldForItsUsersIsNotDetachedByIt) {
  settings.on_loss = config::OnLoss::Hold;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  world.offers.clear();
  world.lose_device();
  ASSERT_TRUE(becomes(State::Lost));
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("python3"));
  EXPECT_EQ(world.count("detach"), 0);
}

TEST_F(DownTest, KeepsAControllerThatAnotherVolumeNeeds) {
  world.shared = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(world.count("disconnect"), 0);
}

class NfsVolumeTest : public VolumeTest {
 protected:
  NfsVolumeTest() {
    settings.nvme.reset();
    settings.nfs = config::NfsSource{"10.0.0.9", "/data"};
    target.reset();
  }
};

TEST_F(NfsVolumeTest, IsMountedAndReadyOnlyOnceItsServerHasAnswered) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, testing::Contains("probe"));
}

TEST_F(NfsVolumeTest, AMountWithAnotherAccessThanConfiguredIsNotAdopted) {
  world.mount("/mnt/data", settings.access != config::Access::ReadOnly, 7, "10.0.0.9:/data", "nfs4");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("already, and not by spark-stage"));
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(NfsVolumeTest, StallsWhileItsServerIsSilent) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.answers = false;
  ASSERT_TRUE(becomes(State::Stalled));
  world.answers = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().history.reconnects(), 1u);
}

}  // namespace
}  // namespace spark::volumes
