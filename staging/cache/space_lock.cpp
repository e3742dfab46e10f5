#include "staging/cache/space_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/access/locks.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kPoll{100},
    kLongest{1'800'000};  // deleting millions of files takes minutes

}  // namespace

Result<UniqueFd> lock_space(const CacheFolder& folder, const std::function<void(std::string)>& say,
                            const StopFlag& stop) {
  const std::string shown = printable(folder.partials().native());
  UniqueFd fd(::open(folder.partials().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown);
  for (auto waited = kPoll * 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; waited += kPoll) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "locking folder " + shown);
    if (waited > kLongest)
      return fail(Errc::Unavailable,
                  "waiting while space is reserved for another dataset: " +
                      lock_holders_in_words(SystemRoot{}, {folder.partials()}) + " has had the lock for " +
                      format_duration(kLongest),
                  "end that process if it hangs");
    if (stop)
      return fail(Errc::Cancelled, "waiting while space is reserved for another dataset: interrupted");
    say("waiting while space is reserved for another dataset");
    std::this_thread::sleep_for(kPoll);
  }
  say("");
  return fd;
}

}  // namespace spark::staging
