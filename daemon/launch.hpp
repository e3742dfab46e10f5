// The only way in the daemon to start a coroutine without a caller that waits for it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <exception>
#include <string>

namespace spark {

// An exception that leaves `work` is a defect. It is logged under `name` and leaves io_context::run(), so
// that the program ends with an error and systemd restarts it. A restart disturbs no mount. If only the
// coroutine of a volume ended, the volume would never change its state again, and the watchdog would not
// notice.
void launch(boost::asio::any_io_executor executor, std::string name, boost::asio::awaitable<void> work);

// The message of an exception, for coroutines that another coroutine waits for.
std::string in_words(const std::exception_ptr& failure);

}  // namespace spark
