#include "bench/hosts/host_command.hpp"

#include <gtest/gtest.h>

namespace spark::bench {
namespace {

TEST(HostCommand, UsesSshOutsideAnAllocationAndSrunWithinOne) {
  EXPECT_EQ(launcher_for(nullptr), Launcher::Ssh);
  EXPECT_EQ(launcher_for(""), Launcher::Ssh);
  EXPECT_EQ(launcher_for("4711"), Launcher::Srun);
}

TEST(HostCommand, IsQuotedForTheShellOfTheOtherHost) {
  const auto words = command_on(Launcher::Ssh, "spark2", {"spark-stage", "a b", "$(reboot)"});
  EXPECT_EQ(words.front(), "ssh");
  EXPECT_EQ(words[words.size() - 2], "spark2");
  EXPECT_EQ(words.back(), "spark-stage 'a b' '$(reboot)'");
}

TEST(HostCommand, NamesTheNodeForSrun) {
  const auto words = command_on(Launcher::Srun, "spark2", {"spark-stage", "a b"});
  EXPECT_EQ(words.front(), "srun");
  EXPECT_EQ(words[words.size() - 3], "--nodelist=spark2");
  EXPECT_EQ(words.back(), "a b");
}

}  // namespace
}  // namespace spark::bench
