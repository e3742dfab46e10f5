// The API's routes: the handler of each, and its permitted callers.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

// Work that may take long becomes a job, so an answer waits for two workers at most.
boost::asio::awaitable<api::Answer> answer_request(const DaemonParts& daemon, api::Request request);

}  // namespace spark
