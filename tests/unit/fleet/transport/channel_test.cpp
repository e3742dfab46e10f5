#include "fleet/transport/channel.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "fleet/transport/key.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<Security> security(const std::string& key, const std::string& name) {
  return Security::make(key, name).value();
}

// A listening socket on a port chosen by the kernel.
struct Listening {
  UniqueFd socket = listen_on({"127.0.0.1", 0}).value();
  Endpoint endpoint() const {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
    return {"127.0.0.1", ntohs(at.sin_port)};
  }
  UniqueFd accept() const {
    pollfd poll{socket.get(), POLLIN, 0};
    ::poll(&poll, 1, 10'000);
    return UniqueFd(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
};

struct ChannelTest : testing::Test {
  ChannelTest() { ::signal(SIGPIPE, SIG_IGN); }  // as in each worker
};

TEST_F(ChannelTest, TransfersDataBothWays) {
  const std::string key = new_key().value();
  const Listening listening;
  const std::string sent(20 << 20, 'x');
  std::thread server([&] {
    auto channel = Channel::accept(security(key, "nqn.server"), listening.accept(), 10s).value();
    std::string got(5, ' ');
    EXPECT_TRUE(channel->read_all(got));
    EXPECT_EQ(got, "hello");
    EXPECT_TRUE(channel->write_all(sent) && channel->flush());
  });
  auto channel = Channel::connect(security(key, "nqn.client"), listening.endpoint(), 10s).value();
  EXPECT_TRUE(channel->write_all("hello") && channel->flush());
  std::string got(sent.size(), ' ');
  EXPECT_TRUE(channel->read_all(got));
  EXPECT_EQ(got, sent);
  server.join();
}

TEST_F(ChannelTest, AnotherKeyIsDeniedOnBothSides) {
  const Listening listening;
  std::thread server([&] {
    const auto channel = Channel::accept(security(new_key().value(), "a"), listening.accept(), 10s);
    EXPECT_EQ(channel.error().kind, Errc::Denied);
  });
  const auto channel = Channel::connect(security(new_key().value(), "b"), listening.endpoint(), 10s);
  server.join();
  EXPECT_EQ(channel.error().kind, Errc::Denied);
}

TEST_F(ChannelTest, AHostThatIsRefusedAtOnceIsToldWhichAddressTheOtherHostHasToList) {
  const Listening listening;
  std::thread server([&] { listening.accept(); });  // and closes
  const auto channel = Channel::connect(security(new_key().value(), "b"), listening.endpoint(), 10s);
  server.join();
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().kind, Errc::Refused) << channel.error().message();
  EXPECT_NE(channel.error().hint.find("fleet.peers have 127.0.0.1"), std::string::npos)
      << channel.error().hint;
}

// A server without the key, with a certificate that it made for itself. Accepts one connection and answers
// it.
void serve_with_certificate(const UniqueFd& socket) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  SSL_CTX_free);
  ASSERT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), socket.get());
  for (int done = 0; done <= 0;) {
    done = SSL_accept(ssl.get());
    pollfd poll{socket.get(), POLLIN, 0};
    if (done <= 0 && SSL_get_error(ssl.get(), done) != SSL_ERROR_WANT_READ) return;
    if (done <= 0 && ::poll(&poll, 1, 10'000) <= 0) return;
  }
  SSL_write(ssl.get(), "hello", 5);
}

TEST_F(ChannelTest, AServerWithACertificateInsteadOfTheKeyIsDenied) {
  const Listening listening;
  std::thread server([&] { serve_with_certificate(listening.accept()); });
  const auto channel = Channel::connect(security(new_key().value(), "b"), listening.endpoint(), 10s);
  server.join();
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().kind, Errc::Denied);
}

TEST_F(ChannelTest, AClientWithoutTlsGetsNothing) {
  const Listening listening;
  std::thread client([&] {
    const UniqueFd plain = connect_to(listening.endpoint(), 10s).value();
    EXPECT_GT(::send(plain.get(), "GET /fleet/v1/node HTTP/1.1\r\n\r\n", 31, MSG_NOSIGNAL), 0);
    char answer[100];
    pollfd poll{plain.get(), POLLIN, 0};
    ::poll(&poll, 1, 10'000);
    const ssize_t got = ::recv(plain.get(), answer, sizeof answer, 0);
    EXPECT_TRUE(got <= 0 || answer[0] == 21) << "an alert of TLS at most";
  });
  const auto channel = Channel::accept(security(new_key().value(), "a"), listening.accept(), 10s);
  EXPECT_EQ(channel.error().kind, Errc::Denied);
  client.join();
}

TEST_F(ChannelTest, AGreetingEndsAtItsDeadlineAlsoIfItsBytesComeOneByOne) {
  const Listening listening;
  std::atomic<bool> is_over{false};
  std::thread client([&] {
    const UniqueFd slow = connect_to(listening.endpoint(), 10s).value();
    std::string record("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11);  // head of a greeting of 16 KiB
    record.resize(5 + (16 << 10));
    for (std::size_t i = 0; i < record.size() && !is_over; ++i) {
      if (::send(slow.get(), &record[i], 1, MSG_NOSIGNAL) != 1) break;
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto channel = Channel::accept(security(new_key().value(), "a"), listening.accept(), 300ms);
  is_over = true;
  client.join();
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().kind, Errc::TimedOut);
}

TEST_F(ChannelTest, AGreetingToAServerEndsAtItsDeadlineAlsoIfItsBytesComeOneByOne) {
  const Listening listening;
  std::atomic<bool> is_over{false};
  std::thread server([&] {
    const UniqueFd slow = listening.accept();
    std::string record("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03", 11);  // head of an answer of 16 KiB
    record.resize(5 + (16 << 10));
    for (std::size_t i = 0; i < record.size() && !is_over; ++i) {
      if (::send(slow.get(), &record[i], 1, MSG_NOSIGNAL) != 1) break;
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto channel = Channel::connect(security(new_key().value(), "a"), listening.endpoint(), 300ms);
  is_over = true;
  server.join();
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().kind, Errc::TimedOut);
}

// A client and a server with the same key.
struct ConnectedPair {
  std::unique_ptr<Channel> client, server;
  ConnectedPair() {
    const std::string key = new_key().value();
    const Listening listening;
    std::thread accepting(
        [&] { server = Channel::accept(security(key, "a"), listening.accept(), 10s).value(); });
    client = Channel::connect(security(key, "b"), listening.endpoint(), 10s).value();
    accepting.join();
  }
};

TEST_F(ChannelTest, SendingEndsAtItsDeadlineAlsoIfSilenceWouldBeAllowed) {
  ConnectedPair pair;  // the client reads nothing, so the kernel's buffers fill up
  pair.server->set_limits(1h, std::chrono::steady_clock::now() + 100ms);
  Result<> sent;
  while (sent) sent = pair.server->write_all(std::string(1 << 20, 'x'));
  EXPECT_EQ(sent.error().kind, Errc::TimedOut);
}

TEST_F(ChannelTest, AFlushEndsAtItsDeadlineAlsoIfSilenceWouldBeAllowed) {
  ConnectedPair pair;
  pair.server->set_limits(1h, std::chrono::steady_clock::now() + 100ms);
  Result<> sent;
  while (sent) {
    sent = pair.server->write_all(std::string(64 << 10, 'x'));  // fits into the channel's own buffer
    if (sent) sent = pair.server->flush();
  }
  EXPECT_EQ(sent.error().kind, Errc::TimedOut);
}

TEST_F(ChannelTest, AnInterruptEndsAWaitForTheOtherHost) {
  ConnectedPair pair;
  Interrupt interrupt;
  pair.client->set_limits(1h, SteadyTime::max(), &interrupt);
  std::thread ending([&] { interrupt.set(); });
  char byte = 0;
  EXPECT_EQ(pair.client->read_some({&byte, 1}).error().kind, Errc::Cancelled);
  ending.join();
}

TEST_F(ChannelTest, AnInterruptEndsAGreeting) {
  const Listening listening;  // accepts nothing, so no greeting is answered
  Interrupt interrupt;
  std::thread ending([&] { interrupt.set(); });
  const auto channel =
      Channel::connect(security(new_key().value(), "a"), listening.endpoint(), 1h, &interrupt);
  EXPECT_EQ(channel.error().kind, Errc::Cancelled);
  ending.join();
}

}  // namespace
