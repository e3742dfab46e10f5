// Simulates the duration of a call.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/sim/targets.hpp"

namespace spark::sim {

namespace asio = boost::asio;

asio::awaitable<void> wait(Duration duration);
// Waits for `pace`, and then for as long as such calls hang.
asio::awaitable<void> wait_for(const Calls& calls, Duration pace);
// A read of the volume: TimedOut, after a while, if it has no answer. `is_live`: it has a live path.
asio::awaitable<Result<>> wait_for_read(const Storage& storage, bool is_live);

}  // namespace spark::sim
