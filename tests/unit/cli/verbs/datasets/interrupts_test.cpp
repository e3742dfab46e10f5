// What comes between a command and its work: an interrupt, a refused connection, an empty word
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "tests/support/temp_folder.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

// The test's client, but for what the two functions do.
class Disturbed final : public Client {
 public:
  explicit Disturbed(FakeClient& client) : client_(client) {}
  std::function<void(const Request&)> before_send = [](const Request&) {};
  std::function<std::optional<Answer>()> instead_of_stream = []() -> std::optional<Answer> { return {}; };

  Result<Answer> send(const Request& request) override {
    before_send(request);
    return client_.send(request);
  }
  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    if (auto answer = instead_of_stream()) return *answer;
    return client_.stream(request, sink, silence);
  }

 private:
  FakeClient& client_;
};

class Disturbances : public ::testing::Test {
 protected:
  static constexpr char kRunning[] =
      R"({"id": "7", "verb": "stage", "subject": ["imagenet"], "state": "running"})";

  Disturbances() {
    program.client.answer("POST /v1/stagings", 202, kRunning);
    program.client.answer("GET /v1/jobs/7", 200, kRunning);
    program.client.stream_once("/v1/jobs/7/events", {{R"({"event": "done", "result": {"datasets": [
        {"name": "imagenet", "state": "ready", "path": "/cache/imagenet/3"}]}})"}});
  }
  void disturb(const std::function<void(Disturbed&)>& how) {
    program.context.make_client = [this, how](const std::string&) {
      auto client = std::make_unique<Disturbed>(program.client);
      how(*client);
      return client;
    };
  }
  Program program;
};

TEST_F(Disturbances, ARunThatIsInterruptedBetweenStagingAndItsCommandStartsNothing) {
  const test::TempFolder folder;
  const std::string file = folder.path() / "started";
  disturb([this](Disturbed& client) {
    client.before_send = [this](const Request& request) {
      if (request.target == "/v1/outputs") program.stop = true;
    };
  });
  EXPECT_EQ(program.run({"run", "imagenet", "--", "touch", file}), 130);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Disturbances, AStagingIsFollowedThroughAnAnswerThatTheUserHasTooManyConnections) {
  disturb([](Disturbed& client) {
    client.instead_of_stream = [left = 2]() mutable -> std::optional<Answer> {
      if (left-- <= 0) return {};
      return Answer{429, R"({"error": {"kind": "unavailable", "what": "too many connections"}})"};
    };
  });
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0) << program.errors();
  EXPECT_EQ(program.output(), "/cache/imagenet/3\n");
}

TEST(Interrupts, OneThatLeavesItemsUndoneIsNoSuccess) {
  Program program;
  int seen = 0;
  const auto work = [&](int) -> Result<> {
    ++seen;
    program.stop = true;
    return {};
  };
  EXPECT_EQ(for_each_item(program.context, std::vector{1, 2}, work), 130);
  EXPECT_EQ(seen, 1);
  program.stop = false;
  EXPECT_EQ(for_each_item(program.context, std::vector{3}, work), 0) << "all are done";
}

TEST(EmptyWords, AreNoArguments) {
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"copy", "", "/data/x"}, Words{"release", ""}, Words{"evict", "a", ""},
                             Words{"cancel", ""}, Words{"stage-out", "", "ck:x"}, Words{"cache", "move", ""},
                             Words{"volumes", "up", ""}, Words{"verify", ""}}) {
    Program program;
    EXPECT_EQ(program.run(words), 2) << words.front();
    EXPECT_NE(program.errors().find("empty - is a variable of a script not set?"), std::string::npos)
        << program.errors();
    EXPECT_TRUE(program.client.sent.empty()) << words.front();
  }
}

}  // namespace
}  // namespace spark::cli
