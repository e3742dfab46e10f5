// How long a simulated call takes.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/sim/targets.hpp"

namespace spark::sim {

namespace asio = boost::asio;

asio::awaitable<void> wait(Duration duration);
// `pace`, and beyond it for as long as such calls hang.
asio::awaitable<void> wait_for(const Calls& calls, Duration pace);
// A read of the volume: TimedOut if it has no answer, which takes a while. `is_live`: a path is.
asio::awaitable<Result<>> wait_for_read(const Storage& storage, bool is_live);

}  // namespace spark::sim
