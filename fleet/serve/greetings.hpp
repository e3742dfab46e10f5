// Connections that have not shown yet that they have the fleet's key.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace spark::fleet {

// Limits them for each address, so that a program without the key takes places from its own host's peer at
// most. Thread-safe.
class Greetings {
 public:
  explicit Greetings(std::size_t most_of_address) : most_(most_of_address) {}

  // Held during the greeting; false if the address has as many as it may have.
  class Place {
   public:
    Place(Greetings& greetings, std::string address)
        : greetings_(greetings), address_(std::move(address)), is_held_(greetings_.enter(address_)) {}
    ~Place() {
      if (is_held_) greetings_.leave(address_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    explicit operator bool() const { return is_held_; }

   private:
    Greetings& greetings_;
    std::string address_;
    bool is_held_;
  };

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> running_;  // by address; none is 0

  bool enter(const std::string& address);
  void leave(const std::string& address);
};

}  // namespace spark::fleet
