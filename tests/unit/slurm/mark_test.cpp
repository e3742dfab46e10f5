#include <gtest/gtest.h>

#include <filesystem>

extern "C" {
#include "slurm/mark.h"
}

namespace spark {
namespace {

TEST(Mark, IsTakenOnceAndOnlyByItsJob) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "marks";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string socket = folder / "api.sock";
  EXPECT_FALSE(take_mark(socket.c_str(), 7));
  mark_job(socket.c_str(), 7);
  mark_job(socket.c_str(), 7);
  EXPECT_FALSE(take_mark(socket.c_str(), 8));
  EXPECT_TRUE(take_mark(socket.c_str(), 7));
  EXPECT_FALSE(take_mark(socket.c_str(), 7));
  std::filesystem::remove_all(folder);
}

TEST(Mark, CannotBeSetWithoutTheDaemonsFolder) {
  mark_job("/nowhere/api.sock", 7);
  EXPECT_FALSE(take_mark("/nowhere/api.sock", 7));
}

}  // namespace
}  // namespace spark
