#include "bench/hosts/host_run.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ostream>

#include "base/no_sigpipe.hpp"
#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr int kStopCheckMs = 200;
constexpr std::chrono::seconds kTidyTime{30};
constexpr std::size_t kLongestRecord = 256 << 20;
constexpr std::size_t kMostWords = 4096;
constexpr std::string_view kReady = "ready ", kRecord = "record ";
constexpr int kNoSuchProgram = 127, kSshFailed = 255;

// The last line that a program printed on stderr, without the program's name in front.
std::string last_words(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    const std::string words = printable(std::string(trim(line)));
    if (!words.empty()) last = words;
  }
  constexpr std::string_view kOurName = "spark-stage: ";
  return last.starts_with(kOurName) ? last.substr(kOurName.size()) : last;
}

}  // namespace

Result<HostRun> HostRun::start(Launcher launcher, const std::string& host,
                               const std::vector<std::string>& command) {
  ChildOptions options;
  options.pipe_stdin = options.pipe_stderr = true;
  auto child = spawn(command_on(launcher, host, command), options);
  if (!child) return fail_with(child.error(), "starting the benchmark on " + printable(host));
  return HostRun(launcher, host, std::move(*child));
}

HostRun::~HostRun() {
  if (!child_.pidfd) return;  // moved from
  child_.in.reset();
  const auto end = std::chrono::steady_clock::now() + kTidyTime;
  while ((child_.out || child_.err) && std::chrono::steady_clock::now() < end) read_some();
  ::kill(child_.pid, SIGTERM);  // no effect on a child that has ended: it is reaped below
  pollfd ended{child_.pidfd.get(), POLLIN, 0};
  if (::poll(&ended, 1, 1000) != 1) ::kill(child_.pid, SIGKILL);
  ::waitpid(child_.pid, nullptr, WNOHANG);
}

bool HostRun::read_some() {
  std::array<pollfd, 2> polled = {pollfd{child_.out.get(), POLLIN, 0}, pollfd{child_.err.get(), POLLIN, 0}};
  if (::poll(polled.data(), polled.size(), kStopCheckMs) <= 0) return true;
  if (polled[1].revents != 0) drain(child_.err, err_);
  if (err_.size() > kMostWords) err_.erase(0, err_.size() - kMostWords);
  if (polled[0].revents != 0) return drain(child_.out, out_);
  return true;
}

Error HostRun::ended() {
  while (child_.err && drain(child_.err, err_)) {
  }
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(child_.pidfd.get()), &info, WEXITED | WNOWAIT);
  const int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  const std::string words = last_words(err_);
  const std::string because = words.empty() ? "" : ": " + words;
  const std::string host = printable(host_);
  if (status == kNoSuchProgram)
    return {Errc::NotFound, "there is no spark-stage on " + host + because, "install it there"};
  if (launcher_ == Launcher::Ssh && status == kSshFailed) {
    return {Errc::Unavailable, "ssh does not reach " + host + because,
            "this has to work without a question: " + trial_of(launcher_, host)};
  }
  return {Errc::Failed, "the benchmark on " + host + " ended with status " + std::to_string(status) + because,
          "every path has to be there too; or measure without it: leave out --with " + host};
}

Result<std::string> HostRun::next_line(HostDeadline end, const StopFlag& stop) {
  for (;;) {
    const std::size_t length = out_.find('\n');
    if (length != std::string::npos) {
      std::string line = out_.substr(0, length);
      out_.erase(0, length + 1);
      return line;
    }
    if (stop) return fail(Errc::Cancelled, "interrupted while " + printable(host_) + " was waited for");
    if (std::chrono::steady_clock::now() >= end || out_.size() > kLongestRecord) {
      return fail(Errc::TimedOut, "the benchmark on " + printable(host_) + " does not answer",
                  "see whether its paths do: spark-stage status; or leave out --with " + printable(host_));
    }
    if (!child_.out || !read_some()) {
      if (out_.find('\n') == std::string::npos) return fail(ended());
    }
  }
}

Result<> HostRun::wait_for_cell(unsigned cell, HostDeadline end, const StopFlag& stop) {
  auto line = next_line(end, stop);
  if (!line) return line.take_error();
  if (*line == std::string(kReady) + std::to_string(cell)) return {};
  return fail(Errc::Failed,
              "the benchmark on " + printable(host_) + " is not in step: it says '" +
                  printable(cut_short(*line, 60)) + "' before measurement " + std::to_string(cell),
              "use one version of spark-stage on all hosts");
}

void HostRun::let_go_on() {
  const NoSigpipe quiet;
  [[maybe_unused]] const ssize_t written = ::write(child_.in.get(), "go\n", 3);
}

Result<Record> HostRun::record(HostDeadline end, const StopFlag& stop) {
  const std::string doing = "taking the results of " + printable(host_);
  auto line = next_line(end, stop);
  if (!line) return line.take_error();
  if (!line->starts_with(kRecord)) return fail(Errc::Failed, doing + ": there are none", "look at that host");
  const auto object = parse_json_object(line->substr(kRecord.size()));
  if (!object) return fail_with(object.error(), doing);
  auto record = record_from_json(*object);
  if (!record) return fail_with(record.error(), doing);
  return record;
}

bool wait_for_word(int in, std::ostream& out, unsigned cell, const StopFlag& stop) {
  out << kReady << cell << std::endl;
  while (!stop) {
    pollfd polled{in, POLLIN, 0};
    if (::poll(&polled, 1, kStopCheckMs) <= 0) continue;
    char letter = 0;
    const ssize_t got = ::read(in, &letter, 1);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return false;
    if (got == 1 && letter == '\n') return true;
  }
  return false;
}

void send_record(std::ostream& out, const json::object& record) {
  out << kRecord << json::serialize(record) << std::endl;
}

}  // namespace spark::bench
