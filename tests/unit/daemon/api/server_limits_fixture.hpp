// A server with limits, and clients of several users.
#pragma once

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "base/file.hpp"
#include "daemon/api/callers.hpp"
#include "daemon/api/server.hpp"
#include "daemon/token.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::api {
using namespace std::chrono_literals;
using testing::HasSubstr;

inline constexpr char kGroup[] = "daemon";  // exists on every Debian
inline constexpr uid_t kNobody = 65534;
inline constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
inline constexpr char kEvents[] = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n";

struct User {
  uid_t uid = 0;
  std::vector<gid_t> groups{};  // the first is the primary group; empty: keep the current ones
};

class ServerLimitsTest : public testing::Test {
 protected:
  ServerLimitsTest() { ::chmod(folder.path().c_str(), 0755); }
  ~ServerLimitsTest() override {
    if (server) server->stop();
    context.restart();
    context.run_for(50ms);
  }
  void listen(Limits limits = {}) {
    auto made = Server::listen(
        context.get_executor(), folder / "api.sock", kGroup,
        [this](Request request) { return handle(std::move(request)); }, limits);
    ASSERT_TRUE(made) << made.error().message();
    server = std::move(*made);
    server->start();
  }
  asio::awaitable<Answer> handle(Request request) {
    seen = request.caller;
    ++handled;
    Answer answer;
    if (!request.path.empty() && request.path[0] == "events") {
      answer.events = [this] { return next_event(); };
      co_return answer;
    }
    answer.body = json::object{{"filler", std::string(filler, 'x')}};
    co_return answer;
  }

  // Counts its live objects; a coroutine that is cancelled between two waits ends with an exception.
  class Counted {
   public:
    explicit Counted(int& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    int& count_;
  };

  // Waits for `news`, then gives one event and ends.
  asio::awaitable<EventLine> next_event() {
    const Counted counted(silent_streams);
    asio::steady_timer timer(context);
    while (!news && !told) {
      timer.expires_after(1ms);
      const auto [error] = co_await timer.async_wait(kToken);
      if (error) break;
    }
    if (!std::exchange(news, false)) co_return nullptr;
    told = true;
    co_return std::make_shared<const std::string>("{\"event\":\"done\"}\n");
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (folder / "api.sock").c_str());
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
    return fd;
  }
  // As a user of the API's group, from this process.
  UniqueFd connect_as(uid_t uid) const {
    EXPECT_EQ(::setegid(member().groups.front()), 0);
    EXPECT_EQ(::seteuid(uid), 0);
    UniqueFd fd = connect();
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::setegid(0), 0);
    return fd;
  }
  static void send(const UniqueFd& fd, std::string_view bytes) {
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static std::string read_all(const UniqueFd& fd) {
    std::string received;
    char buffer[4096];
    for (ssize_t got; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
      received.append(buffer, static_cast<std::size_t>(got));
    return received;
  }
  std::string ask(std::string_view bytes) const {
    const UniqueFd fd = connect();
    if (!fd) return "no connection";
    send(fd, bytes);
    return read_all(fd);
  }
  // Runs `client` as that user while the server's loop runs, and returns its text.
  std::string in_a_process(const User& user, const std::function<std::string()>& client) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(30);
      const bool became =
          user.groups.empty() || (::setgroups(user.groups.size(), user.groups.data()) == 0 &&
                                  ::setgid(user.groups.front()) == 0 && ::setuid(user.uid) == 0);
      const std::string said = became ? client() : "could not become another user";
      (void)!::write(ends[1], said.data(), said.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    const UniqueFd from(ends[0]);
    std::string said;
    EXPECT_TRUE(run_until(context, [&] {
      pollfd ready{from.get(), POLLIN, 0};
      if (::poll(&ready, 1, 0) <= 0) return false;
      char buffer[4096];
      const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
      if (got > 0) said.append(buffer, static_cast<std::size_t>(got));
      return got <= 0;
    }));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return said;
  }
  std::string in_a_process(const std::function<std::string()>& client) { return in_a_process({}, client); }

  // A user with the API's group as its primary group.
  static User member() { return {kNobody, {::getgrnam(kGroup)->gr_gid}}; }
  static User stranger() { return {kNobody, {kNobody}}; }

  boost::asio::io_context context;
  test::TempFolder folder;
  std::shared_ptr<Server> server;
  std::optional<Caller> seen;
  std::size_t filler = 0;
  int silent_streams = 0, handled = 0;
  bool news = false, told = false;
};

#define NEEDS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user"

}  // namespace spark::api
