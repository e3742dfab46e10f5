#include "staging/cache/space_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

}  // namespace

Result<UniqueFd> lock_space(const CacheFolder& folder, const std::function<void(std::string)>& say,
                            const StopFlag& stop) {
  const std::string shown = printable(folder.partials().native());
  UniqueFd fd(::open(folder.partials().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "locking folder " + shown);
    if (stop)
      return fail(Errc::Cancelled, "waiting while space is reserved for another dataset: interrupted");
    say("waiting while space is reserved for another dataset");
    std::this_thread::sleep_for(kPoll);
  }
  say("");
  return fd;
}

}  // namespace spark::staging
