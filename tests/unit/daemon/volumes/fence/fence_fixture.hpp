// An exclusive volume of a namespace with reservations and multi-mount protection, and another host.
#pragma once

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>

#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes::test {

class FenceTest : public VolumeTest {
 protected:
  FenceTest() {
    settings.access = config::Access::Exclusive;
    world.reservations.offers = true;
    world.superblock.has_mmp = true;
    world.superblock.mmp_interval_s = 5;
    world.superblock.mmp_node = FakeWorld::kNode;
  }
  // Another host has the reservation; with multi-mount protection it is "spark2".
  void let_another_host_hold_it() {
    ASSERT_EQ(nvmetcp::take_reservation(other, kThem)->hold, nvmetcp::Hold::Ours);
  }
  void let_another_host_open_it() {
    world.superblock.mmp_node = "spark2";
    world.superblock.mmp_open = world.superblock.being_written = true;
  }
  // A writer whose superblock was probed since.
  void let_it_be_held_without_mmp() {
    world.superblock.has_mmp = false;
    world.superblock.stamp = world.superblock.mounts = 5;
    start();
    ASSERT_TRUE(becomes(State::Ready));
    world.superblock.being_written = true;
    const auto probes = world.count("probe");
    ASSERT_TRUE(run_until([&] { return world.count("probe") >= probes + 2; }));
  }
  void expect_refused_after_one_mount() {
    ASSERT_TRUE(becomes(State::Refused));
    EXPECT_THAT(reason(), testing::HasSubstr("has it open for writing, or died while it had"));
    EXPECT_EQ(world.count("mount rw"), 1);
  }
  // Its mount stays.
  void end_daemon() {
    volume->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(50));
    volume.reset();
    seen.clear();
  }
  std::string holder() {
    const auto* held = world.reservations.holder();
    return held == nullptr ? "" : held->host_id;
  }
  Result<std::string> take(Requests::Take what = Requests::Take::Over) {
    std::optional<Result<std::string>> answer;
    auto ask = [](Volume& asked, Requests::Take how,
                  std::optional<Result<std::string>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.requests().take(how);
    };
    boost::asio::co_spawn(context, ask(*volume, what, answer), boost::asio::detached);
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(Result<std::string>(fail(Errc::Failed, "no answer")));
  }

  static constexpr const char* kOther = "99999999-2222-3333-4444-555555555555";
  const nvmetcp::LocalRegistrant kThem{kOther, 99};
  sim::SimulatedReservations other{world.reservations, kOther};
};

}  // namespace spark::volumes::test
