// A copy in progress with its view mounted: as root, with /dev/fuse.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "staging/copy/copy_with.hpp"
#include "staging/view/fuse/fuse_session.hpp"
#include "tests/unit/staging/view/fuse/fuse_keeper.hpp"
#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {

using namespace std::chrono_literals;

// One process waits at it until another opens it.
class Gate {
 public:
  Gate() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  void open() const { EXPECT_EQ(::write(write_.get(), "", 1), 1); }
  void await() const {
    char byte = 0;
    EXPECT_EQ(::read(read_.get(), &byte, 1), 1);
  }

 private:
  UniqueFd read_, write_;
};

class FuseSessionTest : public ViewTest {
 protected:
  std::filesystem::path source_ = folder_ / "source", copy_ = folder_ / "copy", view_ = folder_ / "view";
  StopFlag stop_{false};
  std::atomic<bool> goes_on_{false};  // for hooks, which the copy calls until it has ended
  CopyOptions options_;
  CopyHooks hooks_;
  std::future<Result<CopyReport>> copying_;
  FuseKeeper keeper_{place_, view_};
  std::vector<pid_t> readers_;

  void SetUp() override {
    std::filesystem::create_directories(view_);
    options_.threads = options_.depth = 2;
  }

  // Every reader ends: what is missing fails, and the connection ends with its device.
  void TearDown() override {
    if (auto map = ViewMap::open(place_)) (*map)->set_failed("the test is over");
    stop_ = true;
    keeper_.end();
    for (const pid_t reader : readers_) ::kill(reader, SIGKILL);
    for (const pid_t reader : readers_) ::waitpid(reader, nullptr, 0);
    if (copying_.valid()) copying_.wait();
    ::umount2(view_.c_str(), MNT_DETACH);
  }

  // Copies in the background, and returns once the view can begin.
  void begin_copy() {
    auto begun = std::make_shared<std::promise<void>>();
    copying_ = std::async(std::launch::async, [this, begun] {
      const auto beside = copy_.parent_path();
      CopyViewer viewer(place_, "faces", beside / ".copy.spark-partial/data", {},
                        {[begun](Bytes, std::uint64_t) { begun->set_value(); }});
      options_.viewer = &viewer;
      auto report = copy_with(hooks_, source_, copy_, options_, kQuiet, stop_);
      if (report) viewer.published(copy_, beside / ".copy.spark-manifest");
      return report;
    });
    ASSERT_EQ(begun->get_future().wait_for(std::chrono::seconds(kHangs)), std::future_status::ready);
  }

  // A process, as a job is: the copy must not wait for what the kernel does to a reader's memory.
  pid_t start_reader(const std::function<int()>& work) {
    const pid_t reader = ::fork();
    if (reader == 0) ::_exit(work());
    readers_.push_back(reader);
    return reader;
  }
  // Returns the status as waitpid() does.
  int end_of(pid_t reader) {
    int status = -1;
    ::waitpid(reader, &status, 0);
    std::erase(readers_, reader);
    return status;
  }

  // Slow enough that most of it is missing when the readers begin.
  void slow_down() {
    hooks_.before_read = [](const std::string&, Bytes) { std::this_thread::sleep_for(30ms); };
  }
};

}  // namespace spark::staging::test
