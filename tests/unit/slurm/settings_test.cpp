#include <gmock/gmock.h>
#include <gtest/gtest.h>

extern "C" {
#include "slurm/settings.h"
}

namespace spark {
namespace {

using testing::HasSubstr;

struct Read {
  int result = 0;
  Daemon daemon{};
  Failure failure{};
};

Read read(std::vector<std::string> arguments, const char* node) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  Read read;
  read.result =
      read_settings(static_cast<int>(pointers.size()), pointers.data(), node, &read.daemon, &read.failure);
  return read;
}

TEST(Settings, DefaultToTheDaemonsSocket) {
  EXPECT_STREQ(read({}, "n1").daemon.socket, "/run/spark-stage/api.sock");
  EXPECT_STREQ(read({}, "n1").daemon.node, "n1");
}

TEST(Settings, NameTheNodeInTheSocketsPath) {
  EXPECT_STREQ(read({"socket=/srv/%n/api.sock"}, "n1").daemon.socket, "/srv/n1/api.sock");
}

TEST(Settings, DoNotSubstituteANameThatChangesTheFolder) {
  EXPECT_STRNE(read({"socket=/srv/%n/api.sock"}, "../n1").daemon.socket, "/srv/../n1/api.sock");
  EXPECT_STRNE(read({"socket=/srv/%n/api.sock"}, "..").daemon.socket, "/srv/../api.sock");
  EXPECT_EQ(std::string(read({}, nullptr).daemon.node).find('.'), std::string::npos);
}

TEST(Settings, RefuseUnknownArgumentsAndInvalidSockets) {
  EXPECT_THAT(read({"soket=/a"}, "n1").failure.what, HasSubstr("not known: soket=/a"));
  EXPECT_EQ(read({"socket=api.sock"}, "n1").result, -1);
  EXPECT_EQ(read({"socket=/" + std::string(120, 'a')}, "n1").result, -1);
}

}  // namespace
}  // namespace spark
