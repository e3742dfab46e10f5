#include "daemon/metrics/port.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/local_port.hpp"
#include "tests/support/run_on.hpp"

namespace spark::metrics {
namespace {

using testing::HasSubstr;

class PortTest : public testing::Test {
 protected:
  ~PortTest() override {
    port.stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(50));
  }
  static config::MetricsSettings on(std::uint16_t number) { return {nvmetcp::Portal{"127.0.0.1", number}}; }

  static int connect(std::uint16_t number) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(number);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
  }
  // The complete answer to the request, or the error of connect().
  std::string ask(std::uint16_t number, const std::string& request) {
    std::string received;
    std::atomic<bool> done = false;
    std::thread client([&] {
      const int fd = connect(number);
      if (fd < 0) {
        received = "refused";
      } else {
        (void)!::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
        char buffer[4096];
        for (ssize_t got; (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
          received.append(buffer, static_cast<std::size_t>(got));
        }
      }
      ::close(fd);
      done = true;
    });
    EXPECT_TRUE(run_until(context, [&] { return done.load(); }));
    client.join();
    return received;
  }
  std::string get(std::uint16_t number, const std::string& path) {
    return ask(number, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  boost::asio::io_context context;
  Port port{context.get_executor(), [] { return std::string("up 1\n"); }, Duration(20)};
};

TEST_F(PortTest, ServesMetricsAndNothingElse) {
  const std::uint16_t number = test::LocalPort().portal.port;
  port.apply(on(number));
  const std::string page = get(number, "/metrics");
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(page, testing::EndsWith("\r\n\r\nup 1\n"));
  for (const char* path : {"/", "/v1/status", "/healthz", "/metrics/x"}) {
    EXPECT_THAT(get(number, path), HasSubstr("404 Not Found")) << path;
  }
  EXPECT_THAT(ask(number, "POST /metrics HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
              HasSubstr("404 Not Found"));
}

TEST_F(PortTest, HalfRequestsKeepNobodyFromTheMetrics) {
  const std::uint16_t number = test::LocalPort().portal.port;
  port.apply(on(number));
  std::vector<int> half;
  for (int i = 0; i < 40; ++i) {
    half.push_back(connect(number));
    (void)!::send(half.back(), "GET /metrics HTTP/1.1\r\nHost:", 28, MSG_NOSIGNAL);
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(get(number, "/metrics"), HasSubstr("200 OK"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8))
      << "it waited for none of them";
  for (const int fd : half) ::close(fd);
}

TEST_F(PortTest, WholeRequestsKeepNobodyFromTheMetricsNorDoThoseOfClientsThatHaveLeft) {
  const std::uint16_t number = test::LocalPort().portal.port;
  int pages = 0;
  Port counted{context.get_executor(), [&] { return "up " + std::to_string(++pages) + "\n"; }, Duration(20)};
  counted.apply(on(number));
  std::vector<int> kept;
  for (int i = 0; i < 2000; ++i) {
    const int fd = connect(number);
    (void)!::send(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 34, MSG_NOSIGNAL);
    if (i < 1900) {
      ::close(fd);
    } else {
      kept.push_back(fd);
    }
    context.restart();
    context.poll();
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(get(number, "/metrics"), HasSubstr("200 OK"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8))
      << "it waited for none of them";
  EXPECT_LT(pages, 100);
  for (const int fd : kept) ::close(fd);
  counted.stop();
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
}

TEST_F(PortTest, ThePageThatUsersGetIsMadeOnceASecond) {
  int pages = 0;
  Port counted{context.get_executor(), [&] { return "up " + std::to_string(++pages) + "\n"; }, Duration(20)};
  for (int i = 0; i < 100; ++i) (void)counted.page();
  EXPECT_LT(pages, 3);
  EXPECT_TRUE(run_until(context,
                        [&] { return counted.page() == "up " + std::to_string(pages) + "\n" && pages > 1; }));
}

TEST_F(PortTest, FollowsTheConfiguration) {
  const std::uint16_t first = test::LocalPort().portal.port;
  port.apply(on(first));
  EXPECT_THAT(get(first, "/metrics"), HasSubstr("200 OK"));
  const std::uint16_t second = test::LocalPort().portal.port;
  port.apply(on(second));
  EXPECT_EQ(get(first, "/metrics"), "refused");
  EXPECT_THAT(get(second, "/metrics"), HasSubstr("200 OK"));
  port.apply({});
  EXPECT_EQ(get(second, "/metrics"), "refused");
}

TEST_F(PortTest, AnAddressInUseIsRetriedUntilItIsFree) {
  const std::uint16_t number = test::LocalPort().portal.port;
  {
    Port other{context.get_executor(), [] { return std::string("other 1\n"); }, Duration(20)};
    other.apply(on(number));
    ASSERT_TRUE(other.is_open());
    port.apply(on(number));
    EXPECT_FALSE(port.is_open());
    other.stop();
  }
  EXPECT_TRUE(run_until(context, [&] { return port.is_open(); }));
  EXPECT_THAT(get(number, "/metrics"), HasSubstr("up 1"));
}

}  // namespace
}  // namespace spark::metrics
