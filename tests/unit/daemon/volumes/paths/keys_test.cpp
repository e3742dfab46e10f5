// A volume of a target that requires a key. The keys themselves are handled by the connecting worker.
#include <gmock/gmock.h>

#include "daemon/workers/messages.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

class VolumeKeys : public VolumeTest {
 protected:
  VolumeKeys() {
    target->options.host_key_file = "/etc/keys/host";
    timings.refused_retry = std::chrono::hours(1);
  }
};

TEST_F(VolumeKeys, TheConnectRequestNamesTheKeyFile) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.last_options.host_key_file, "/etc/keys/host");
  const auto request = from_message<nvmetcp::ConnectOptions>(to_message(world.last_options));
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, world.last_options);
}

TEST_F(VolumeKeys, AWrongKeyIsRefusedAndNotRetriedAtOnce) {
  world.connect_error = Error{Errc::Refused, "the target rejected the key in /etc/keys/host", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("/etc/keys/host"));
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world.count("connect"), 1);
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(VolumeKeys, AKernelWithoutKeySupportIsRefused) {
  world.connect_error = Error{Errc::Unsupported, "the kernel does not know dhchap_secret", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(VolumeKeys, AnExistingMountIsAdoptedOnlyIfItsConnectionHasTheKey) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.connect_error = Error{Errc::Refused, "nvme7 is connected without the key in /etc/keys/host", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("unmount") + world.count("detach") + world.count("disconnect"), 0);
  world.connect_error.reset();
  volume->requests().ask_up();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(VolumeKeys, NothingIsMountedWhileAnotherPathToTheSubsystemLacksTheKey) {
  timings.refused_retry = Duration(2);
  world.unsecured = Error{Errc::Refused, "nvme8 is a path to the same subsystem, without the key", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("nvme8"));
  EXPECT_EQ(world.count("mount ro"), 0);
  world.unsecured.reset();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeKeys, APathConnectedLaterWithoutTheKeyCausesAWarning) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(all_warnings(volume->status()).empty());
  world.unsecured = Error{Errc::Refused, "nvme8 is a path to the same subsystem, without the key", ""};
  ASSERT_TRUE(run_until([&] { return !volume->status().insecure.empty(); }));
  EXPECT_THAT(all_warnings(volume->status()), testing::ElementsAre(HasSubstr("nvme8")));
  EXPECT_EQ(volume->status().state, State::Ready);
  world.unsecured.reset();
  EXPECT_TRUE(run_until([&] { return volume->status().insecure.empty(); }));
}

TEST_F(VolumeKeys, AnExistingConnectionIsUsedOnlyIfItHasTheKey) {
  world.plug_in(kNqn);
  world.connect_error = Error{Errc::Refused, "nvme7 is connected without the key in /etc/keys/host", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("mount ro"), 0);
}

}  // namespace
}  // namespace spark::volumes
