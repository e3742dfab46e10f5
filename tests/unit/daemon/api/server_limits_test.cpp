// The limits of the API for each user.
#include "tests/unit/daemon/api/server_limits_fixture.hpp"

namespace spark::api {
namespace {

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
