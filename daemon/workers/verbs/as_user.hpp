// Runs a worker with a caller's permissions.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace spark::workers {

// Permanently switches this process to the user and the user's groups. Does nothing if the process already
// runs as that user. May query a directory server. Denied if the user has no account here, or this process
// may not change its user.
Result<> become_user(uid_t uid);

}  // namespace spark::workers
