// Ends the waits of other threads for another host.
#pragma once

#include <atomic>
#include <chrono>

#include "base/file.hpp"

namespace spark::fleet {

// Thread-safe.
class Interrupt {
 public:
  Interrupt();
  void set();
  bool is_set() const { return is_set_; }
  int event() const { return event_.get(); }  // readable once it is set

 private:
  UniqueFd event_;  // -1 if the system allows no more files: waits then end at their own limits
  std::atomic<bool> is_set_{false};
};

// Waits until the socket is ready for the events of poll(2). False after `patience`, or once `interrupt` is
// set; null: never.
bool wait_for(int socket, short events, std::chrono::milliseconds patience, const Interrupt* interrupt);

}  // namespace spark::fleet
