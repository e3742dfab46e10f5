// The API's requests: which handler answers which, and who may make them.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

// Work that may take long is a job, so no answer waits for more than one or two workers.
boost::asio::awaitable<api::Answer> answer_request(const DaemonParts& daemon, api::Request request);

}  // namespace spark
