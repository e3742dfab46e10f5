// Two versions of the protocol in one fleet.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "fleet/transport/http.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::FleetHost;
using spark::staging::Source;
using spark::test::TempFolder;

namespace {

// A host that supports only version 2: it has the key, and rejects requests of version 1.
class LaterHost {
 public:
  explicit LaterHost(const std::string& key) : security_(Security::make(key, "nqn.later").value()) {
    serving_ = std::thread([this] { run(); });
  }
  ~LaterHost() {
    stop_ = true;
    serving_.join();
  }
  PeerAddress address() const { return {"later", {at_}}; }
  unsigned refused() const { return refused_; }

 private:
  std::shared_ptr<Security> security_;
  Endpoint at_{"127.0.0.1", spark::test::LocalPort().portal.port};
  UniqueFd listening_ = listen_on(at_).value();
  StopFlag stop_{false};
  std::atomic<unsigned> refused_{0};
  std::thread serving_;

  void run() {
    while (!stop_) {
      pollfd poll{listening_.get(), POLLIN, 0};
      if (::poll(&poll, 1, 50) <= 0) continue;
      UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      auto channel = Channel::accept(security_, std::move(socket), std::chrono::milliseconds(2000));
      if (channel) answer(**channel);
    }
  }

  void answer(Channel& channel) {
    std::string buffered;
    const auto head = read_request(channel, buffered);
    if (!head || !*head) return;
    AnswerHead answer;
    answer.status = (*head)->target.starts_with("/fleet/v2/") ? 200 : 404;
    if (answer.status == 404) ++refused_;
    if (channel.write_all(to_text(answer))) (void)channel.flush();
  }
};

class VersionsTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  TempFolder folder_;
  FleetHost host_{key_, "nqn.first"};
  Source source_{"set", folder_ / "source", {}};

  VersionsTest() {
    source_.origin = "folder set";
    std::filesystem::create_directories(source_.path);
    EXPECT_TRUE(write_file_atomically(source_.path / "a", std::string(100, 'a')));
  }
};

TEST_F(VersionsTest, AHostThatOnlySupportsALaterVersionIsSkipped) {
  LaterHost later(key_);
  const auto staged = host_.stage(source_, {later.address()});
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_GT(later.refused(), 0u) << "it was asked";
  EXPECT_EQ(staged->report.bytes_from_peers, 0u);
  EXPECT_TRUE(staged->report.warnings.empty());
}

TEST_F(VersionsTest, AHostThatOnlySupportsALaterVersionIsReported) {
  LaterHost later(key_);
  Peer peer(later.address(), Security::make(key_, "nqn").value());
  const auto text =
      peer.get_text({}, 4096, {std::chrono::milliseconds(5000), std::chrono::milliseconds(10'000)});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, Errc::Unsupported);
  EXPECT_NE(text.error().message().find("another version"), std::string::npos);
}

TEST_F(VersionsTest, ARequestOfALaterVersionIsRefusedAndTheConnectionStays) {
  ASSERT_TRUE(host_.stage(source_, {}));
  const auto security = Security::make(key_, "nqn").value();
  const auto connect = [&] {
    return Channel::connect(security, host_.address().endpoints.front(), std::chrono::milliseconds(5000));
  };
  auto channel = connect();
  for (int i = 0; !channel && i < 100; ++i) {  // its thread may not be listening yet
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    channel = connect();
  }
  ASSERT_TRUE(channel) << channel.error().message();
  std::string buffered;
  for (const auto& [target, status] :
       {std::pair("/fleet/v2/node", 404u), {"/fleet/v1/later", 404u}, {"/fleet/v1/node", 200u}}) {
    ASSERT_TRUE((*channel)->write_all(request_text(target)) && (*channel)->flush());
    const auto head = read_answer(**channel, buffered);
    ASSERT_TRUE(head) << head.error().message();
    EXPECT_EQ(head->status, status) << target;
  }
}

}  // namespace
