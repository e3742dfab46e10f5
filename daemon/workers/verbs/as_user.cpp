#include "daemon/workers/verbs/as_user.hpp"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace spark::workers {

Result<> become_user(uid_t uid) {
  if (uid == ::geteuid()) return {};
  const std::string doing = "working as uid " + std::to_string(uid);
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(uid, &entry, text.data(), text.size(), &found);
  if (error != 0) return fail_errno(error, doing);
  if (found == nullptr)
    return fail(Errc::Denied, doing + ": there is no such user on this host", "ask as another user");
  const pid_t parent = ::getppid();
  if (::initgroups(entry.pw_name, entry.pw_gid) != 0 ||
      ::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) != 0 || ::setresuid(uid, uid, uid) != 0)
    return fail_errno(errno, doing);
  // The kernel clears it when the user changes; the worker would then outlive its daemon.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return fail_errno(errno, doing);
  // It becomes what fs.suid_dumpable says. The user may send this process signals, but not look into it.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno(errno, doing);
  if (::getppid() != parent) return fail(Errc::Cancelled, doing + ": the daemon has ended");
  return {};
}

}  // namespace spark::workers
