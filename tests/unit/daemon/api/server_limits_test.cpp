// Limits and permissions of callers: the real server on a real socket, with separate client processes.
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
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr char kGroup[] = "daemon";  // exists on every Debian
constexpr uid_t kNobody = 65534;
constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kEvents[] = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n";

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

TEST_F(ServerLimitsTest, AnUnfinishedHeaderIsCutOffAtTheDeadline) {
  listen({.slowest = 1s});  // long enough for a complete request, even on a busy machine
  EXPECT_EQ(in_a_process([&] { return ask("GET / HTTP/1.1\r\nHost:") + "|"; }), "|");
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
}

TEST_F(ServerLimitsTest, AnUnfinishedBodyIsCutOffAtTheDeadline) {
  listen({.slowest = 300ms});
  EXPECT_EQ(in_a_process([&] { return ask("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n{\"a") + "|"; }),
            "|");
  EXPECT_FALSE(seen);
}

TEST_F(ServerLimitsTest, SendingByteByByteDoesNotExtendTheDeadline) {
  listen({.slowest = 300ms});
  const std::string said = in_a_process([&] {
    const UniqueFd fd = connect();
    for (int i = 0; i < 1000; ++i) {
      send(fd, i == 0 ? "GET / HTTP/1.1\r\nX: " : "x");
      pollfd ended{fd.get(), POLLIN, 0};
      if (::poll(&ended, 1, 50) > 0) return std::string("cut off");
    }
    return std::string("still there after a minute");
  });
  EXPECT_EQ(said, "cut off");
}

TEST_F(ServerLimitsTest, AnUnreadAnswerIsAbandonedAndFreesItsConnection) {
  NEEDS_ROOT();
  filler = 16 << 20;  // more than the kernel's socket buffers
  listen({.connections = 1, .user_connections = 1, .slowest = 2s});
  const std::string said = in_a_process(member(), [&] {
    const UniqueFd lazy = connect();
    send(lazy, kGet);
    std::string next = ask(kGet);
    const bool was_refused = next.find("429 Too Many Requests") != std::string::npos;
    while (next.size() < (16 << 20)) next = ask(kGet);
    return std::string(was_refused ? "refused, then answered" : "answered");
  });
  EXPECT_EQ(said, "refused, then answered") << "the only connection is free again";
}

TEST_F(ServerLimitsTest, AUserWhoReadsNothingHasFewAnswersInMemoryAndHoldsUpNoOther) {
  NEEDS_ROOT();
  filler = 2 << 20;  // more than the kernel's socket buffers
  listen({.user_answers = 4 << 20, .answer_per_request = 1 << 30});
  std::vector<UniqueFd> lazy;
  for (int i = 0; i < 10; ++i) lazy.push_back(connect_as(60'001));
  for (const UniqueFd& fd : lazy) send(fd, kGet);
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_THAT(in_a_process(member(), [&] { return ask(kGet); }), HasSubstr("200 OK"));
  context.restart();
  context.run_for(300ms);
  EXPECT_LE(handled, 2 + 4);
  lazy.clear();
  const User same{60'001, member().groups};
  EXPECT_THAT(in_a_process(same, [&] { return ask(kGet); }), HasSubstr("200 OK"));
}

TEST_F(ServerLimitsTest, AHeaderOverTheLimitIsRefusedAndTheAnswerStatesTheLimit) {
  listen({.header = 1000});
  const std::string header = "GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n";
  const std::string answer = in_a_process([&] { return ask(header); });
  EXPECT_THAT(answer, HasSubstr("431 Request Header Fields Too Large"));
  EXPECT_THAT(answer, HasSubstr("the header is larger than 1000 bytes"));
  EXPECT_FALSE(seen);
}

TEST_F(ServerLimitsTest, ABodyOverTheLimitIsRefusedAndTheAnswerStatesTheLimit) {
  listen({.body = 100});
  const std::string answer = in_a_process(
      [&] { return ask("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n" + std::string(101, ' ')); });
  EXPECT_THAT(answer, HasSubstr("413 Payload Too Large"));
  EXPECT_THAT(answer, HasSubstr("the body is larger than 100 bytes"));
  EXPECT_FALSE(seen);
}

TEST_F(ServerLimitsTest, RootGetsInWhileUsersHaveAllConnections) {
  NEEDS_ROOT();
  listen({.connections = 4, .user_connections = 1});
  std::vector<UniqueFd> held;
  for (uid_t uid = 60'001; uid <= 60'004; ++uid) held.push_back(connect_as(uid));
  for (const UniqueFd& fd : held) send(fd, kEvents);
  ASSERT_TRUE(run_until(context, [&] { return silent_streams == 4; }));
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_THAT(in_a_process(member(), [&] { return ask(kGet); }), HasSubstr("429 Too Many Requests"));
  held.clear();
  ASSERT_TRUE(run_until(context, [&] { return silent_streams == 0; }));
  EXPECT_THAT(in_a_process(member(), [&] { return ask(kGet); }), HasSubstr("200 OK"));
}

// Four members with as many event streams as they may have.
TEST_F(ServerLimitsTest, AFewUsersLeaveConnectionsForOthers) {
  Callers callers(Limits{});
  for (uid_t uid = 1000; uid < 1004; ++uid)
    while (callers.enter({.uid = uid})) continue;
  EXPECT_TRUE(callers.enter({.uid = 1005}));
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(callers.enter({.may_change = true}));
}

TEST_F(ServerLimitsTest, AClientThatLeavesASilentEventStreamFreesItsConnection) {
  listen({.connections = 2});
  UniqueFd first = connect(), second = connect();
  send(first, kEvents);
  send(second, kEvents);
  ASSERT_TRUE(run_until(context, [&] { return silent_streams == 2; }));
  first.reset();
  second.reset();
  EXPECT_TRUE(run_until(context, [&] { return silent_streams == 0; }));
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
}

// Like `nc` at the end of its input.
TEST_F(ServerLimitsTest, AHalfClosedClientStillReceivesItsEvents) {
  listen();
  const UniqueFd client = connect();
  send(client, kEvents);
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  ASSERT_TRUE(run_until(context, [&] { return silent_streams == 1; }));
  context.restart();
  context.run_for(50ms);
  EXPECT_EQ(silent_streams, 1);
  news = true;
  ASSERT_TRUE(run_until(context, [&] { return silent_streams == 0; }));
  std::string received;
  EXPECT_TRUE(run_until(context, [&] {
    char buffer[4096];
    const ssize_t got = ::recv(client.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) received.append(buffer, static_cast<std::size_t>(got));
    return received.ends_with("0\r\n\r\n");
  }));
  EXPECT_THAT(received, HasSubstr(R"({"event":"done"})"));
}

TEST_F(ServerLimitsTest, ConnectionsAreLimitedForEachUserExceptRoot) {
  NEEDS_ROOT();
  listen({.connections = 10, .user_connections = 2});
  const std::string said = in_a_process(member(), [&] {
    const UniqueFd first = connect(), second = connect();
    const std::string refusal = ask(kGet);
    ::usleep(300'000);  // root sends requests meanwhile
    return refusal;
  });
  EXPECT_THAT(said, HasSubstr("429 Too Many Requests"));
  EXPECT_THAT(said, HasSubstr("uid 65534 has too many connections already"));
  const std::string root = in_a_process([&] {
    std::vector<UniqueFd> held;
    for (int i = 0; i < 5; ++i) held.push_back(connect());
    return ask(kGet);
  });
  EXPECT_THAT(root, HasSubstr("200 OK")) << "root has no limit of its own";
}

TEST_F(ServerLimitsTest, TheRequestRateIsLimitedForEachUserExceptRoot) {
  NEEDS_ROOT();
  listen({.user_requests_per_second = 20});
  const auto ask_fifty_times = [&] {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 50; ++i) {
      if (ask(kGet).find("200 OK") == std::string::npos) return std::string("not answered");
    }
    return std::to_string((std::chrono::steady_clock::now() - began) / 1ms);
  };
  // The first 20 use up the allowance of one second.
  const int user_ms = std::stoi(in_a_process(member(), ask_fifty_times));
  EXPECT_GE(user_ms, 1400);
  EXPECT_NE(in_a_process(ask_fifty_times), "not answered");
  EXPECT_EQ(Callers({.user_requests_per_second = 1}).until_turn({.may_change = true}, {}), 0s);
}

TEST_F(ServerLimitsTest, RootMayMakeChangesAndGroupMembersMayNot) {
  NEEDS_ROOT();
  listen();
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_TRUE(seen->may_change);
  EXPECT_THAT(in_a_process(member(), [&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_EQ(seen->uid, kNobody);
  EXPECT_TRUE(seen->may_use);
  EXPECT_FALSE(seen->may_change);
}

TEST_F(ServerLimitsTest, ASupplementaryGroupGrantsAccess) {
  NEEDS_ROOT();
  listen();
  const User second{kNobody, {kNobody, ::getgrnam(kGroup)->gr_gid}};
  EXPECT_THAT(in_a_process(second, [&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_FALSE(seen->may_change);
}

TEST_F(ServerLimitsTest, TheGroupIsFoundAmongAThousandSupplementaryGroups) {
  NEEDS_ROOT();
  listen();
  User user{kNobody, {kNobody}};
  for (gid_t group = 100'000; group < 101'000; ++group) user.groups.push_back(group);
  user.groups.push_back(::getgrnam(kGroup)->gr_gid);
  EXPECT_THAT(in_a_process(user, [&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_TRUE(seen && seen->may_use);
}

TEST_F(ServerLimitsTest, AUserOutsideTheGroupCannotConnect) {
  NEEDS_ROOT();
  listen();
  EXPECT_EQ(in_a_process(stranger(), [&] { return ask(kGet); }), "no connection");
}

// Even if the socket is open to all users, the server checks the caller's user.
TEST_F(ServerLimitsTest, AUserOutsideTheGroupIsDeniedEvenIfTheSocketIsOpenToAll) {
  NEEDS_ROOT();
  listen();
  ::chmod((folder / "api.sock").c_str(), 0666);
  const std::string answer = in_a_process(stranger(), [&] { return ask(kGet); });
  EXPECT_THAT(answer, HasSubstr("403 Forbidden"));
  EXPECT_THAT(answer, HasSubstr("uid 65534 may not use spark-stage"));
  EXPECT_FALSE(seen);
}

}  // namespace
}  // namespace spark::api
