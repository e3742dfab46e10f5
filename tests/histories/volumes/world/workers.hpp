// The workers of a simulated host: a call takes virtual time, ends by its deadline, and outlives the daemon
// that made it as a process in the kernel does.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <list>
#include <memory>
#include <variant>

#include "base/result.hpp"
#include "daemon/timer.hpp"
#include "tests/histories/volumes/world/scene.hpp"

namespace spark::histories {

namespace asio = boost::asio;

// The worker goes on after that time. In the kernel it can't be killed before: the effect of its system call
// comes in any case.
struct Pause {
  Duration time{0};
  bool is_in_kernel = false;
};

// One turn of a worker: at most one effect on the world.
template <class T>
using Turn = std::variant<Pause, Result<T>>;
template <class T>
using Work = std::function<Turn<T>()>;

class Workers {
 public:
  explicit Workers(Scene scene) : scene_(scene) {}

  template <class T>
  asio::awaitable<Result<T>> run(std::string subject, std::string verb, Duration deadline, Work<T> work);
  // A worker past its deadline that is still in the kernel, of the daemon that runs now.
  bool is_stuck(const std::string& subject) const;
  // Its daemon was killed. Each worker dies now, or at the end of its system call.
  void lose_daemon(Random& random);
  void reboot();

 private:
  struct Job {
    std::string subject, verb;
    std::function<std::optional<Pause>()> turn;
    std::function<void()> answered;
    bool is_in_kernel = false, is_abandoned = false;
    int life = 0;
    std::optional<TimeSource::Ticket> ticket;
  };
  using JobPtr = std::shared_ptr<Job>;
  void schedule(const JobPtr& job, Duration after);
  void take_turn(const JobPtr& job);
  void end(const JobPtr& job);
  void expire(const JobPtr& job);
  Duration latency();

  Scene scene_;
  std::list<JobPtr> jobs_;
  int life_ = 1;
};

template <class T>
asio::awaitable<Result<T>> Workers::run(std::string subject, std::string verb, Duration deadline,
                                        Work<T> work) {
  struct Waiting {
    std::optional<Result<T>> answer;
    Timer* timer = nullptr;
  };
  struct Leaves {  // also when the daemon is killed
    std::shared_ptr<Waiting> waiting;
    ~Leaves() { waiting->timer = nullptr; }
  };
  const auto waiting = std::make_shared<Waiting>();
  const auto job = std::make_shared<Job>();
  job->subject = std::move(subject);
  job->verb = std::move(verb);
  job->life = life_;
  auto turn = [waiting, work = std::move(work)]() -> std::optional<Pause> {
    auto done = work();
    if (const Pause* pause = std::get_if<Pause>(&done)) return *pause;
    waiting->answer.emplace(std::move(std::get<Result<T>>(done)));
    return std::nullopt;
  };
  job->turn = std::move(turn);
  auto answered = [waiting] {
    if (waiting->timer != nullptr) waiting->timer->cancel();
  };
  job->answered = std::move(answered);
  Timer timer(co_await asio::this_coro::executor);
  timer.expires_after(deadline);
  waiting->timer = &timer;
  const Leaves leaves{waiting};
  schedule(job, latency());
  co_await timer.wait();
  if (waiting->answer) co_return std::move(*waiting->answer);
  const std::string late = job->verb + ": no answer within " + format_duration(deadline);
  expire(job);
  co_return fail(Errc::TimedOut, late);
}

}  // namespace spark::histories
