// The output of --verbose: each request to the daemon's API and its answer's status, on stderr.
#pragma once

#include <memory>
#include <ostream>

#include "base/clock.hpp"
#include "cli/client/client.hpp"

namespace spark::cli {

// `err` and `clock` have to outlive it.
std::unique_ptr<Client> make_verbose(std::unique_ptr<Client> client, std::ostream& err, const Clock& clock);

}  // namespace spark::cli
