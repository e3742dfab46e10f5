// The folder that a job writes its checkpoints to. A worker of root finds it by a path whose parts may belong
// to users, and then works as its owner.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace spark::staging {

// The owner of the folder at the absolute path. Refused if a user could have put another user's folder there:
// behind a symbolic link, or below a folder with another owner. Also refused if root owns it and other users
// may write to it: they could make the daemon read any file as root. NotFound if there is none, Invalid if it
// is no folder.
Result<uid_t> owner_of_job_folder(const std::string& path);

}  // namespace spark::staging
