#include "daemon/state_lock.hpp"

#include <fcntl.h>

#include "base/access/locks.hpp"
#include "base/text.hpp"

namespace spark {

Result<UniqueFd> lock_state(const std::filesystem::path& state_dir, std::chrono::milliseconds patience) {
  // A file that no earlier version had, so that no other user can have opened it.
  const std::filesystem::path file = state_dir / "daemon.lock";
  const UniqueFd made(::open(file.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!made) return UniqueFd();
  auto locked = lock_private(file, patience, "using the state folder " + printable(state_dir.native()));
  if (locked) return locked;
  if (locked.error().kind != Errc::Unavailable) return UniqueFd();
  return fail(Errc::Unavailable, locked.error().what,
              "stop that daemon first (`sudo systemctl stop spark-staged`); a second one needs --state-dir, "
              "and a cache.path of its own");
}

}  // namespace spark
