#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

extern "C" {
#include "slurm/environment.h"
}

namespace spark {
namespace {

// A daemon with a file system at `folder` in a mount namespace of its own, as a process.
class ViewTest : public testing::Test {
 protected:
  ViewTest() {
    char name[] = "/tmp/spark-view-XXXXXX";
    home_ = ::mkdtemp(name);
    std::filesystem::create_directory(folder());
  }
  ~ViewTest() override {
    if (daemon_ > 0) ::kill(daemon_, SIGKILL);
    if (daemon_ > 0) ::waitpid(daemon_, nullptr, 0);
    std::filesystem::remove_all(home_);
  }

  std::string folder() const { return home_ + "/view"; }
  std::string socket() const { return home_ + "/api.sock"; }

  // False: this system has no mount namespaces for the test.
  bool start_daemon() {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return false;
    daemon_ = ::fork();
    if (daemon_ == 0) ::_exit(serve(ready[1]));
    ::close(ready[1]);
    char byte = 0;
    const bool is_ready = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    return is_ready;
  }

  // In another namespace, from before the daemon's mount, as a job's.
  static int in_job(const std::function<int()>& work) {
    const pid_t job = ::fork();
    if (job == 0)
      ::_exit(::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0
                  ? work()
                  : 99);
    int status = 0;
    ::waitpid(job, &status, 0);
    return WEXITSTATUS(status);
  }

  int show(const std::string& state) {
    const std::string event = R"({"event":"done","result":{"datasets":[{"state":")" + state +
                              R"(","path":")" + folder() + R"("}]}})";
    StagedList staged{};
    Progress progress{};
    EXPECT_EQ(json_read_event(event.c_str(), &progress, &staged, &failure_), EventDone);
    const int shown = show_views(socket().c_str(), &staged, &failure_);
    free_staged(&staged);
    return shown;
  }
  bool is_there() const { return std::filesystem::exists(folder() + "/of-the-view"); }

  Failure failure_{};

 private:
  std::string home_;
  pid_t daemon_ = -1;

  int serve(int ready) const {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("view", folder().c_str(), "tmpfs", 0, nullptr) != 0)
      return 1;
    ::close(::open((folder() + "/of-the-view").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, socket().c_str());
    if (::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listening, 8) != 0 || ::write(ready, "x", 1) != 1)
      return 1;
    ::pause();
    return 0;
  }
};

TEST_F(ViewTest, AJobWithMountsOfItsOwnGetsTheViewOfItsHost) {
  ASSERT_TRUE(start_daemon()) << "mount namespaces need root";
  EXPECT_EQ(in_job([this] { return is_there() ? 1 : 0; }), 0);
  EXPECT_EQ(in_job([this] { return show("live") == 0 && is_there() && show("live") == 0 ? 0 : 1; }), 0);
  EXPECT_FALSE(is_there()) << "in no other namespace";
}

TEST_F(ViewTest, ACopyNeedsNothing) {
  EXPECT_EQ(show("ready"), 0);
}

TEST_F(ViewTest, ABareFolderIsNeverTakenForAView) {
  EXPECT_EQ(show("live"), -1) << "no daemon answers";
  EXPECT_THAT(failure_.what, testing::HasSubstr("do not have the live view " + folder()));
  EXPECT_THAT(failure_.hint, testing::HasSubstr("without :now"));
}

}  // namespace
}  // namespace spark
