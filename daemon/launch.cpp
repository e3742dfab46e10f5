#include "daemon/launch.hpp"

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark {

std::string in_words(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

void launch(boost::asio::any_io_executor executor, std::string name, boost::asio::awaitable<void> work) {
  auto end = [name = std::move(name)](const std::exception_ptr& failure) {
    if (!failure) return;
    log::error(printable(name + " ended with an exception: " + in_words(failure)) +
               "; the daemon ends, so that systemd restarts it. Mounts are not affected. This is a defect: "
               "please report it");
    std::rethrow_exception(failure);
  };
  boost::asio::co_spawn(executor, std::move(work), std::move(end));
}

}  // namespace spark
