#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_daemon.hpp"

extern "C" {
#include "slurm/outputs.h"
}

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kWithOutputs[] = R"({"outputs":{"run7":{"path":"/data/out/run7"}}})";

int note(void* step, const char* name, const char* value, Failure*) {
  *static_cast<std::string*>(step) += std::string(name) + "=" + value;
  return 0;
}

class OutputsTest : public testing::Test {
 protected:
  NameList list(const char* text) {
    NameList names{};
    EXPECT_EQ(parse_outputs(text, &names, &failure_), 0) << failure_.what;
    return names;
  }

  Wait wait_ = wait_for_ms(60'000, -1);
  Failure failure_{};
};

TEST_F(OutputsTest, MustBePlainNames) {
  NameList names = list("run7,run_8.a-b");
  EXPECT_EQ(names.count, 2u);
  free_names(&names);
  for (const char* text : {"a:b", "a/b", "../x", "a b", "", "a,,b", "\xc3\xa4"}) {
    EXPECT_EQ(parse_outputs(text, &names, &failure_), -1) << text;
  }
}

TEST_F(OutputsTest, UnconfiguredOutputsAreRefusedUnlessAccessIsDenied) {
  const auto check = [&](std::vector<std::string> answers, const char* text) {
    FakeDaemon fake(std::move(answers));
    const Daemon daemon = daemon_at(fake.path());
    NameList names = list(text);
    const int result = check_outputs(&daemon, &names, &wait_, &failure_);
    free_names(&names);
    return result;
  };
  EXPECT_EQ(check({answer(200, kWithOutputs)}, "run7"), 0);
  EXPECT_EQ(check({answer(200, kWithOutputs)}, "run7,run8"), -1);
  EXPECT_THAT(failure_.what, HasSubstr("there is no output 'run8' in the configuration of n1"));
  EXPECT_EQ(check({answer(403, "{}")}, "run8"), 0);
}

TEST_F(OutputsTest, HaveTheirFoldersInVariablesOfTheirOwn) {
  FakeDaemon fake({answer(200, kWithOutputs)});
  const Daemon daemon = daemon_at(fake.path());
  NameList names = list("run7");
  std::string noted;
  const Environment environment{note, nullptr, nullptr, &noted};
  EXPECT_EQ(set_output_variables(&environment, &daemon, &names, &wait_, &failure_), 0);
  EXPECT_EQ(noted, "SPARK_STAGE_OUT_RUN7=/data/out/run7");
  free_names(&names);
}

TEST_F(OutputsTest, AreAllSentEvenIfOneFails) {
  FakeDaemon fake({answer(409, R"({"error":{"kind":"refused","what":"no rule","hint":""}})"),
                   answer(200, R"({"accepted":true})")});
  const Daemon daemon = daemon_at(fake.path());
  NameList names = list("run7,run8");
  EXPECT_EQ(send_outputs(&daemon, &names, &wait_, &failure_), -1);
  EXPECT_STREQ(failure_.what, "no rule");
  EXPECT_THAT(fake.requests(), ElementsAre(StartsWith("POST /v1/outputs/run7/send "),
                                           StartsWith("POST /v1/outputs/run8/send ")));
  free_names(&names);
}

std::string shown;

TEST_F(OutputsTest, AreNamedWhenTheirNewestCheckpointIsNotOnTheVolume) {
  FakeDaemon fake({answer(200, R"({"name":"run7","unsent":"step-9 is not on checkpoints:run7 yet"})"),
                   answer(200, R"({"name":"run8","unsent":null})"), answer(403, "{}")});
  const Daemon daemon = daemon_at(fake.path());
  NameList names = list("run7,run8,run9");
  shown.clear();
  report_unsent(&daemon, &names, &wait_, [](const char* line) { shown += line; });
  EXPECT_EQ(shown, "n1: output run7: step-9 is not on checkpoints:run7 yet");
  EXPECT_THAT(fake.requests(),
              ElementsAre(StartsWith("GET /v1/outputs/run7 "), StartsWith("GET /v1/outputs/run8 "),
                          StartsWith("GET /v1/outputs/run9 ")));
  free_names(&names);
}

}  // namespace
}  // namespace spark
