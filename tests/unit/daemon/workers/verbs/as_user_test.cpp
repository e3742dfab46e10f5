#include "daemon/workers/verbs/as_user.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>

#include "base/file.hpp"
#include "tests/support/skip.hpp"

namespace spark::workers {
namespace {

constexpr uid_t kNobody = 65534;

// Its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class AsUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) SPARK_SKIP("only root can become another user");
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    worker_ = ::fork();
    if (worker_ == 0) {
      const bool is_user = become_user(kNobody).has_value();
      std::ignore = ::write(ready[1], is_user ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char is_user = 'n';
    EXPECT_EQ(::read(ready[0], &is_user, 1), 1);
    EXPECT_EQ(is_user, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void TearDown() override {
    if (worker_ <= 0) return;
    ::kill(worker_, SIGKILL);
    ::waitpid(worker_, nullptr, 0);
  }
  // By another process of the user: the errno, or 0.
  int as_the_user(const std::function<bool()>& succeeds) const {
    return in_child([&] {
      if (::setresgid(kNobody, kNobody, kNobody) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0)
        return 255;
      return succeeds() ? 0 : errno;
    });
  }

  pid_t worker_ = 0;
};

TEST_F(AsUserTest, TheUserMayStopTheWorkerButNotLookIntoIt) {
  EXPECT_EQ(as_the_user([&] { return ::kill(worker_, SIGSTOP) == 0; }), 0);
  const std::string process = "/proc/" + std::to_string(worker_);
  for (const char* file : {"/mem", "/environ", "/maps"}) {
    const std::string name = process + file;
    EXPECT_EQ(
        as_the_user([&] { return static_cast<bool>(UniqueFd(::open(name.c_str(), O_RDONLY | O_CLOEXEC))); }),
        EACCES)
        << file;
  }
  EXPECT_EQ(as_the_user([&] { return ::ptrace(PTRACE_SEIZE, worker_, nullptr, nullptr) == 0; }), EPERM);
}

}  // namespace
}  // namespace spark::workers
