// How every coroutine of the daemon waits: errors come back as values, since a wait called off is no
// exception.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spark {

inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace spark
