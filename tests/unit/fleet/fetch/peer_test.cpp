#include "fleet/fetch/peer.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/fleet/fetch/fake_host.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;
using spark::fleet::test::answering_byte_by_byte;
using spark::fleet::test::FakeHost;
using spark::fleet::test::FleetHost;

namespace {

class PeerTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  std::shared_ptr<Security> security_ = Security::make(key_, "nqn.client").value();
  std::atomic<bool> has_begun_{false};  // an answer
  PeerTest() { ::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(PeerTest, ARequestEndsAtItsLimitAlsoIfItsBytesComeOneByOne) {
  FakeHost slow(key_, answering_byte_by_byte(has_begun_));
  Peer peer(slow.address(), security_);
  const auto text = peer.get_text({}, kMiB, {1h, 500ms});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, Errc::TimedOut);
}

TEST_F(PeerTest, AnInterruptEndsARequestUnderWay) {
  FakeHost slow(key_, answering_byte_by_byte(has_begun_));
  Peer peer(slow.address(), security_);
  Interrupt interrupt;
  std::thread ending([&] {
    while (!has_begun_) std::this_thread::sleep_for(5ms);
    interrupt.set();
  });
  const auto text = peer.get_text({}, kMiB, {1h, 1h}, &interrupt);
  ending.join();
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, Errc::Cancelled);
}

TEST_F(PeerTest, AKeyThatWasReplacedInItsFileIsUsedForTheNextConnection) {
  FleetHost host(key_, "nqn.host");
  const spark::test::TempFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "key", key_ + "\n", 0600));
  const auto old = Security::make(new_key().value(), "nqn.client").value();
  const auto current = std::make_shared<CurrentSecurity>(old, folder / "key");
  Peer first(host.address(), current), second(host.address(), current), fixed(host.address(), old);
  Result<std::string> text = first.get_text({}, kMiB, {10s, 20s});
  while (!text && text.error().kind == Errc::Unavailable)  // until its thread listens
    text = first.get_text({}, kMiB, {10s, 20s});
  EXPECT_TRUE(text) << text.error().message();
  EXPECT_TRUE(second.get_text({}, kMiB, {10s, 20s})) << "all peers share the key";
  EXPECT_EQ(fixed.get_text({}, kMiB, {10s, 20s}).error().kind, Errc::Denied);
}

TEST_F(PeerTest, APeerWhoseAnswersComeByteByByteHoldsUpNoStaging) {
  FleetHost host(key_, "nqn.host");
  FakeHost slow(key_, answering_byte_by_byte(has_begun_));
  const spark::test::TempFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "a", std::string(3 * kMiB, 'a')));
  for (const char* state : {"", "superblock 1"}) {  // the second one also shares a walk
    staging::Source source{"set" + std::string(state), folder.path(), {}};
    source.state = state;
    source.is_still_so = [] { return Result<>{}; };
    const auto staged = host.stage(source, {slow.address()});
    ASSERT_TRUE(staged) << staged.error().message();
    EXPECT_EQ(staged->report.bytes_from_peers, 0u);
  }
}

}  // namespace
