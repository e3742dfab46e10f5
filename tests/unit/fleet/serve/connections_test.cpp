#include "fleet/serve/connections.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

using spark::UniqueFd;
using spark::fleet::Connections;

namespace {

struct Pair {
  UniqueFd ours, theirs;
  Pair() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    ours = UniqueFd(both[0]);
    theirs = UniqueFd(both[1]);
  }
};

// Reads until the end of the connection.
void drain(const UniqueFd& socket) {
  char byte;
  while (::read(socket.get(), &byte, 1) > 0) continue;
}

TEST(Connections, TheirThreadsEndEvenIfThePeerIsSilent) {
  std::atomic<int> ended{0};
  Pair one, other;
  {
    Connections connections({2, 2}, [&](const UniqueFd& socket) {
      drain(socket);
      ++ended;
    });
    EXPECT_TRUE(connections.open(std::move(one.ours), "a"));
    EXPECT_TRUE(connections.open(std::move(other.ours), "a"));
  }
  EXPECT_EQ(ended, 2);
}

TEST(Connections, MoreThanTheLimitAreRefusedUntilOneHasEnded) {
  std::atomic<int> ended{0};
  Pair one, refused, later;
  Connections connections({1, 1}, [&](const UniqueFd& socket) {
    drain(socket);
    ++ended;
  });
  EXPECT_TRUE(connections.open(std::move(one.ours), "a"));
  EXPECT_FALSE(connections.open(std::move(refused.ours), "a"));
  one.theirs = UniqueFd();
  while (ended == 0) std::this_thread::yield();
  UniqueFd socket(::dup(later.ours.get()));
  while (!connections.open(std::move(socket), "a")) {  // its thread counts first, then ends
    std::this_thread::yield();
    socket = UniqueFd(::dup(later.ours.get()));
  }
}

TEST(Connections, OneThatIsNotServedIsClosedAtOnce) {
  Pair one;
  Connections connections({1, 1}, [](const UniqueFd& /*socket*/) {});
  EXPECT_TRUE(connections.open(std::move(one.ours), "a"));
  drain(one.theirs);  // returns although no thread was joined yet
}

}  // namespace
