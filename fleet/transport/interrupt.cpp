#include "fleet/transport/interrupt.hpp"

#include <poll.h>
#include <sys/eventfd.h>

namespace spark::fleet {

Interrupt::Interrupt() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Interrupt::set() {
  is_set_ = true;
  if (event_) (void)::eventfd_write(event_.get(), 1);
}

bool wait_for(int socket, short events, std::chrono::milliseconds patience, const Interrupt* interrupt) {
  pollfd polls[] = {{socket, events, 0}, {interrupt == nullptr ? -1 : interrupt->event(), POLLIN, 0}};
  return ::poll(polls, 2, static_cast<int>(patience.count())) > 0 && polls[0].revents != 0;
}

}  // namespace spark::fleet
