// The one way in the daemon to start a coroutine that nothing waits for.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <exception>
#include <string>

namespace spark {

// An exception that leaves `work` is a defect. It is logged under `name` and leaves io_context::run(), so
// that the program ends with an error and systemd restarts it. A restart disturbs no mount; a volume whose
// coroutine has ended would never change its state again, and the watchdog would not notice.
void launch(boost::asio::any_io_executor executor, std::string name, boost::asio::awaitable<void> work);

// What an exception says; for coroutines whose end something else waits for.
std::string in_words(const std::exception_ptr& failure);

}  // namespace spark
