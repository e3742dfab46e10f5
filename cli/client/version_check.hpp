// A warning, once, when the daemon is of another version than this program: after `make install` over an
// older one, say.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "cli/client/client.hpp"

namespace spark::cli {

// `err` has to outlive it.
std::unique_ptr<Client> make_version_check(std::unique_ptr<Client> client, std::ostream& err);

// The daemon's version out of an answer's `server`; empty if that is no spark-staged.
std::string daemon_version(const Answer& answer);

}  // namespace spark::cli
