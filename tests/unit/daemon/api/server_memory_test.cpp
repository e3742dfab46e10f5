// What the requests and answers of one user take of the memory.
#include <algorithm>
#include <utility>

#include "tests/unit/daemon/api/server_limits_fixture.hpp"

namespace spark::api {
namespace {

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

TEST_F(ServerLimitsTest, AUserWithUnfinishedLargeBodiesHasFewInMemoryAndHoldsUpNoOther) {
  NEEDS_ROOT();
  listen({.user_answers = 4 << 20});
  constexpr std::size_t kBody = 1'000'000;
  const std::string request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kBody) +
                              "\r\n\r\n" + std::string(kBody - 1, ' ');  // one byte is missing
  std::vector<std::pair<UniqueFd, std::size_t>> slow(10);
  for (auto& [fd, sent] : slow) fd = connect_as(60'001);
  const auto taken = [&] {  // whole requests, without that byte
    for (auto& [fd, sent] : slow) {
      const ssize_t more = ::send(fd.get(), request.data() + sent, request.size() - sent, MSG_DONTWAIT);
      sent += static_cast<std::size_t>(std::max<ssize_t>(0, more));
    }
    return std::ranges::count(slow, request.size(), &std::pair<UniqueFd, std::size_t>::second);
  };
  EXPECT_TRUE(run_until(context, [&] { return taken() >= 4; }));
  for (int i = 0; i < 300; ++i) {
    context.restart();
    context.run_for(1ms);
    EXPECT_LE(taken(), 4);
  }
  EXPECT_THAT(in_a_process([&] { return ask(kGet); }), HasSubstr("200 OK"));
  EXPECT_THAT(in_a_process(member(), [&] { return ask(kGet); }), HasSubstr("200 OK"));
  slow.clear();
  const User same{60'001, member().groups};
  EXPECT_THAT(in_a_process(same, [&] { return ask(kGet); }), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace spark::api
