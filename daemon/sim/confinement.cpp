#include "daemon/sim/confinement.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::sim {
namespace {

constexpr char kMark[] = "simulated";

bool has(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

Result<> drop_privileges() {
  const std::string doing = "giving up privileges for the simulation";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(errno, doing);
  // EINVAL: no more capabilities. EPERM: an ordinary user has none to drop.
  for (unsigned long capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;) ++capability;
  if (errno != EINVAL && ::geteuid() == 0) return fail_errno(errno, doing);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) return fail_errno(errno, doing);
  return {};
}

Result<> claim_state_folder(const std::filesystem::path& folder) {
  if (has(folder / kMark)) return {};
  if (has(folder / "volumes") || has(folder / "mount-points")) {
    return fail(
        Errc::Invalid,
        printable(folder.native()) + " has the state of a real host, which a simulation must not change",
        "give the simulation a folder of its own: --state-dir FOLDER");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(Errc::Failed, "making " + printable(folder.native()) + ": " + error.message(),
                "give a folder that you may write: --state-dir FOLDER");
  return write_file_atomically(folder / kMark, "the state of a simulation (spark-staged --sim)\n");
}

Result<> check_not_simulated(const std::filesystem::path& folder) {
  if (!has(folder / kMark)) return {};
  return fail(Errc::Invalid, printable(folder.native()) + " has the state of a simulation",
              "give another folder (--state-dir), or remove this one");
}

}  // namespace spark::sim
