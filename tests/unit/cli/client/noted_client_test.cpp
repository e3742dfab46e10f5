#include "cli/client/noted_client.hpp"

#include <gtest/gtest.h>

#include "base/version.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

TEST(NotedClient, AnotherVersionOfTheDaemonIsNamedOnce) {
  for (const std::string version : {"0.0.9", kVersion}) {
    Program twice;
    twice.client.answer("POST /v1/stagings", 202, R"({"id": "7"})");
    twice.client.answer("GET /v1/stagings/7", 200, R"({"id": "7", "state": "ready"})");
    twice.client.server = "spark-staged/" + version;
    EXPECT_EQ(twice.run({"stage", "a", "--detach"}), 0);
    const std::string said = twice.errors();
    EXPECT_EQ(said.find("the running daemon is version 0.0.9") != std::string::npos, version != kVersion)
        << said;
    EXPECT_EQ(said.find("warning:"), said.rfind("warning:")) << said;
  }
  Program quiet;
  quiet.client.answer("POST /v1/stagings", 202, R"({"id": "7"})");
  quiet.client.server = "spark-staged/0.0.9";
  EXPECT_EQ(quiet.run({"stage", "a", "--detach", "-q"}), 0);
  EXPECT_EQ(quiet.errors(), "");
}

}  // namespace
}  // namespace spark::cli
