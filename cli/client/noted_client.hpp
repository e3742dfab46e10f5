// Notes about the requests to the daemon, on stderr.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "base/clock.hpp"
#include "cli/client/client.hpp"

namespace spark::cli {

struct ClientNotes {
  // A warning, once, when the daemon is of another version than this program: after `make install` over an
  // older one, say.
  bool on_version = true;
  bool on_requests = false;  // each one, and its answer's status: --verbose
};

// `err` and `clock` have to outlive it.
std::unique_ptr<Client> make_noted(std::unique_ptr<Client> client, ClientNotes notes, std::ostream& err,
                                   const Clock& clock);

// The daemon's version out of an answer's `server`; empty if that is no spark-staged.
std::string daemon_version(const Answer& answer);

}  // namespace spark::cli
