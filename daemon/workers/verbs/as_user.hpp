// A worker that works with a caller's rights.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace spark::workers {

// Gives up this process's rights for those of the user, with its groups, for good. Nothing to do if the
// process has them already. May ask a directory server. Denied: the user has no account here, or this process
// may not change its user.
Result<> become_user(uid_t uid);

}  // namespace spark::workers
