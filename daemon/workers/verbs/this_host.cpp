#include "daemon/workers/verbs/this_host.hpp"

#include <unistd.h>

#include <cerrno>

namespace spark::workers {

Result<std::string> this_host() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return fail_errno(errno, "asking for this host's name");
  return std::string(name);
}

}  // namespace spark::workers
