#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "fake_daemon.hpp"

extern "C" {
#include "slurm/http.h"
}

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Http : public testing::Test {
 protected:
  int send(const FakeDaemon& daemon, const char* body = nullptr) {
    const HttpRequest request{daemon.path(), "POST", "/v1/stagings", body};
    return http_send(&answer_, &request, &wait_);
  }
  std::string body() {
    char* text = http_body(&answer_, &wait_);
    std::string copy = text == nullptr ? "(none)" : text;
    std::free(text);
    http_close(&answer_);
    return copy;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    char* line = nullptr;
    while ((last_ = http_line(&answer_, &line, &wait_)) == 1) {
      lines.emplace_back(line);
      std::free(line);
    }
    http_close(&answer_);
    return lines;
  }

  HttpAnswer answer_{};
  Wait wait_ = wait_for_ms(60'000, -1);
  int last_ = 1;
};

TEST_F(Http, ARequestHasItsLengthAndClosesTheConnection) {
  FakeDaemon daemon({answer(202, "{}")});
  ASSERT_EQ(send(daemon, "{\"a\":1}"), 0);
  http_close(&answer_);
  EXPECT_THAT(daemon.requests(),
              ElementsAre(testing::AllOf(
                  HasSubstr("POST /v1/stagings HTTP/1.1\r\n"), HasSubstr("Content-Length: 7\r\n"),
                  HasSubstr("Connection: close\r\n"), HasSubstr("\r\n\r\n{\"a\":1}"))));
}

TEST_F(Http, AnAnswerIsReadToItsLength) {
  FakeDaemon daemon({answer(404, "a text") + "and more"});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_EQ(answer_.status, 404);
  EXPECT_EQ(body(), "a text");
}

TEST_F(Http, AnAnswerWithoutALengthEndsWhenTheConnectionCloses) {
  FakeDaemon daemon({"HTTP/1.1 200 OK\r\n\r\nto the end"});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_EQ(body(), "to the end");
}

TEST_F(Http, AnEmptyBodyIsAValidAnswer) {
  FakeDaemon daemon({answer(200, "")});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_EQ(body(), "");
}

TEST_F(Http, LinesMaySpanChunks) {
  FakeDaemon daemon({"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk("one\ntw") +
                     chunk("o\n\nth") + chunk("ree\n") + "0\r\n\r\n"});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_THAT(lines(), ElementsAre("one", "two", "", "three"));
  EXPECT_EQ(last_, 0);
}

TEST_F(Http, ATruncatedStreamIsAnError) {
  FakeDaemon daemon({events({"one"}, true)});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_THAT(lines(), ElementsAre("one"));
  EXPECT_EQ(last_, -1);
}

TEST_F(Http, ALongBodyIsReadWhole) {
  const std::string text(100'000, 'x');
  FakeDaemon daemon({answer(200, text)});
  ASSERT_EQ(send(daemon), 0);
  EXPECT_EQ(body(), text);
}

TEST_F(Http, AnAnswerThatIsNotHttpIsAnError) {
  for (const std::string& text : {std::string(), std::string("HTTP/1.1 200"), std::string("hello\r\n\r\n"),
                                  "HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x')}) {
    FakeDaemon daemon({text});
    EXPECT_EQ(send(daemon), -1) << text.substr(0, 20);
  }
}

TEST_F(Http, ASilentDaemonTimesOut) {
  const std::string path = std::string(testing::TempDir()) + "silent.sock";
  ::unlink(path.c_str());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  const HttpRequest request{path.c_str(), "GET", "/", nullptr};
  const Wait over = wait_for_ms(0, -1);
  HttpAnswer first{}, second{};
  EXPECT_EQ(http_send(&first, &request, &over), -1);  // never accepted
  EXPECT_EQ(errno, ETIMEDOUT);
  // Now the queue of connections is full.
  EXPECT_EQ(http_send(&second, &request, &over), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  ::close(listener);
}

TEST_F(Http, AMissingSocketIsAnError) {
  const HttpRequest request{"/nowhere/api.sock", "GET", "/", nullptr};
  EXPECT_EQ(http_send(&answer_, &request, &wait_), -1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace spark
