// The real client against a server with all kinds of faults.
#include "cli/client/client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/file.hpp"

namespace spark::cli {
namespace {

using namespace std::chrono_literals;

// Accepts one connection, reads the request's head, then runs the script.
class Server {
 public:
  using Script = std::function<void(int connection)>;

  explicit Server(Script script)
      : path_(std::filesystem::temp_directory_path() /
              ("spark-client-" + std::to_string(::getpid()) + ".sock")) {
    std::filesystem::remove(path_);
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this, script] { serve(script); });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove(path_);
  }

  std::string socket() const { return path_.string(); }
  const std::string& request() const { return request_; }

 private:
  void serve(const Script& script) {
    const UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
    if (!connection) return;
    while (request_.find("\r\n\r\n") == std::string::npos) {
      char buffer[4096];
      const ssize_t got = ::read(connection.get(), buffer, sizeof buffer);
      if (got <= 0) return;
      request_.append(buffer, static_cast<std::size_t>(got));
    }
    script(connection.get());
  }

  std::filesystem::path path_;
  UniqueFd listener_;
  std::string request_;
  std::thread thread_;
};

void say(int connection, const std::string& text) {
  EXPECT_EQ(::send(connection, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// Waits until the client closes, at most a minute.
void be_silent(int connection) {
  pollfd closed{connection, POLLIN | POLLRDHUP, 0};
  ::poll(&closed, 1, 60'000);
}

std::string answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string chunk(const std::string& text) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}

constexpr char kChunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr ClientDeadlines kLong{Duration(60'000), Duration(60'000)};  // never reached

class ClientTest : public ::testing::Test {
 protected:
  Result<Answer> send(const std::string& socket, Request request = {"GET", "/v1/status", {}},
                      ClientDeadlines deadlines = kLong) {
    return make_unix_client(socket, stop, deadlines)->send(request);
  }
  Result<Answer> stream(const std::string& socket, std::size_t enough, Duration silence = Duration(60'000)) {
    const auto sink = [&](std::string_view line) {
      lines.emplace_back(line);
      return lines.size() < enough;
    };
    return make_unix_client(socket, stop, kLong)->stream({"GET", "/v1/jobs/1/events", {}}, sink, silence);
  }

  StopFlag stop{false};
  std::vector<std::string> lines;
};

TEST_F(ClientTest, ACompleteAnswerIsReturned) {
  Server server([](int c) { say(c, answer("200 OK", R"({"a": 1})")); });
  const auto got = send(server.socket(), {"POST", "/v1/stagings", R"({"datasets": []})"});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->status, 200u);
  EXPECT_EQ(got->body, R"({"a": 1})");
  EXPECT_TRUE(server.request().starts_with("POST /v1/stagings HTTP/1.1\r\n")) << server.request();
}

TEST_F(ClientTest, AnErrorIsAnAnswerToo) {
  Server server([](int c) { say(c, answer("403 Forbidden", "{}")); });
  EXPECT_EQ(send(server.socket())->status, 403u);
}

// Like a daemon that accepts no more connections of this user.
TEST_F(ClientTest, AnAnswerSentBeforeTheWholeRequestWasReadIsReturned) {
  Server server([](int c) { say(c, answer("429 Too Many Requests", "{}")); });
  const auto got = send(server.socket(), {"POST", "/v1/stagings", std::string(8 << 20, ' ')});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->status, 429u);
}

TEST_F(ClientTest, AnAnswerSentByteByByteIsRead) {
  Server server([](int c) {
    for (const char byte : answer("200 OK", "{}")) {
      say(c, std::string(1, byte));
      std::this_thread::sleep_for(2ms);
    }
  });
  EXPECT_EQ(send(server.socket())->body, "{}");
}

TEST_F(ClientTest, NoSocketSaysHowToStartTheDaemon) {
  const auto got = send("/no/such/api.sock");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Unavailable);
  EXPECT_EQ(
      got.error().message(),
      "asking spark-staged on /no/such/api.sock: there is no such socket, the daemon is not running - start "
      "it with `systemctl start spark-staged`, or name its socket with --socket");
}

TEST_F(ClientTest, ASocketWithoutAListenerIsReported) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("spark-dead-" + std::to_string(::getpid()));
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  const auto got = send(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Unavailable);
  EXPECT_NE(got.error().message().find("no process listens"), std::string::npos) << got.error().message();
}

TEST_F(ClientTest, ADeniedConnectionNamesTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody without access";
  Server server([](int) {});
  ::chmod(server.socket().c_str(), 0600);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto got = send(server.socket());
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Denied);
  EXPECT_NE(got.error().message().find("usermod -aG spark-stage"), std::string::npos)
      << got.error().message();
}

TEST_F(ClientTest, ATooLongSocketPathIsInvalid) {
  EXPECT_EQ(send("/" + std::string(200, 'x')).error().kind, Errc::Invalid);
}

TEST_F(ClientTest, ASilentDaemonIsUnavailableAfterTheDeadline) {
  Server server(be_silent);
  const auto got = send(server.socket(), {"GET", "/v1/status", {}}, {Duration(500), Duration(500)});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Unavailable);
  EXPECT_NE(got.error().message().find("was silent for 500 ms"), std::string::npos) << got.error().message();
}

TEST_F(ClientTest, ARequestMayTakeLongerThanTheClientsDeadline) {
  Server server([](int c) {
    std::this_thread::sleep_for(200ms);
    say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  });
  const auto got = send(server.socket(), {"GET", "/v1/outputs/run7/latest", "", 60s}, {60s, 100ms});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->body, "{}");
}

TEST_F(ClientTest, ATruncatedAnswerIsUnavailable) {
  Server server([](int c) { say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"); });
  EXPECT_EQ(send(server.socket()).error().kind, Errc::Unavailable);
}

TEST_F(ClientTest, AConnectionClosedBeforeTheAnswerIsUnavailable) {
  Server server([](int) {});
  EXPECT_EQ(send(server.socket()).error().kind, Errc::Unavailable);
}

TEST_F(ClientTest, AnAnswerThatIsNotHttpIsReported) {
  Server server([](int c) { say(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n"); });
  const auto got = send(server.socket());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Errc::Failed);
  EXPECT_NE(got.error().message().find("is not HTTP"), std::string::npos) << got.error().message();
}

TEST_F(ClientTest, EventsArriveAsTheyAreSent) {
  Server server([](int c) {
    say(c, kChunked + chunk("{\"n\": 1}\n{\"n\""));
    std::this_thread::sleep_for(20ms);
    say(c, chunk(": 2}\n\n") + chunk("{\"n\": 3}\n"));
    be_silent(c);
  });
  const auto got = stream(server.socket(), 3);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(lines, (std::vector<std::string>{"{\"n\": 1}", "{\"n\": 2}", "{\"n\": 3}"}));
}

TEST_F(ClientTest, TheAnswerToARefusedStreamIsReadCompletely) {
  Server server([](int c) { say(c, answer("404 Not Found", R"({"error": {}})")); });
  const auto got = stream(server.socket(), 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 404u);
  EXPECT_EQ(got->body, R"({"error": {}})");
}

TEST_F(ClientTest, ATruncatedStreamIsUnavailableAfterItsLines) {
  Server server([](int c) { say(c, kChunked + chunk("{\"n\": 1}\n")); });
  EXPECT_EQ(stream(server.socket(), 9).error().kind, Errc::Unavailable);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(ClientTest, AStreamThatEndsEarlyIsUnavailable) {
  Server server([](int c) { say(c, kChunked + chunk("{\"n\": 1}\n") + "0\r\n\r\n"); });
  EXPECT_EQ(stream(server.socket(), 9).error().kind, Errc::Unavailable);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(ClientTest, ASilentStreamTimesOut) {
  Server server([](int c) {
    say(c, kChunked + chunk("{\"n\": 1}\n"));
    be_silent(c);
  });
  EXPECT_EQ(stream(server.socket(), 9, Duration(200)).error().kind, Errc::TimedOut);
}

TEST_F(ClientTest, AStreamIsEndedByTheStopFlag) {
  Server server([this](int c) {
    say(c, kChunked + chunk("{\"n\": 1}\n"));
    std::this_thread::sleep_for(50ms);
    stop = true;
    be_silent(c);
  });
  EXPECT_EQ(stream(server.socket(), 9).error().kind, Errc::Cancelled);
}

TEST_F(ClientTest, AnEndlessLineFailsInsteadOfFillingMemory) {
  Server server([](int c) {
    say(c, kChunked);
    const std::string piece = chunk(std::string(65536, 'x'));
    while (::send(c, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  EXPECT_EQ(stream(server.socket(), 9).error().kind, Errc::Failed);
}

}  // namespace
}  // namespace spark::cli
