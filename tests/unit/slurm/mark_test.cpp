#include <gtest/gtest.h>
#include <unistd.h>

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

TEST(Mark, OfATaskHasTheTasksText) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "task-marks";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string socket = folder / "api.sock";
  char text[8];
  mark_job(socket.c_str(), 7);
  const TaskId first{7, 0, 0}, second{7, 0, 1};
  for (const TaskId& task : {first, second}) {
    const int mark = open_task_mark(socket.c_str(), task);
    EXPECT_EQ(::write(mark, task.task == 0 ? "/tmp/a" : "/tmp/bcdef", task.task == 0 ? 6 : 10),
              task.task == 0 ? 6 : 10);
    ::close(mark);
  }
  take_task_mark(socket.c_str(), first, text, sizeof text);
  EXPECT_STREQ(text, "/tmp/a");
  take_task_mark(socket.c_str(), first, text, sizeof text);
  EXPECT_STREQ(text, "");
  take_task_mark(socket.c_str(), second, text, sizeof text);
  EXPECT_STREQ(text, "/tmp/bc");
  EXPECT_TRUE(take_mark(socket.c_str(), 7));
  std::filesystem::remove_all(folder);
}

TEST(Mark, CannotBeSetWithoutTheDaemonsFolder) {
  mark_job("/nowhere/api.sock", 7);
  EXPECT_FALSE(take_mark("/nowhere/api.sock", 7));
}

}  // namespace
}  // namespace spark
