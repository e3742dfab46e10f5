// A share for each client of a pool of places, so that a few clients never take all of it.
#pragma once

#include <cstddef>
#include <map>

namespace spark {

// Not thread-safe. `Client` is an ordered value, for example an address.
template <class Client>
class Shares {
 public:
  // A client may have `most_of_client` of the `most` places. Once only a quarter is left, it may have an
  // eighth of that, and at least one: the rest is for clients with fewer.
  Shares(std::size_t most, std::size_t most_of_client) : most_(most), most_of_client_(most_of_client) {}

  // False: the client has its share, or no place is left. Otherwise leave() must follow.
  bool enter(const Client& client) {
    const bool is_scarce = taken_ >= most_ - most_ / 4;
    const std::size_t share = is_scarce && most_of_client_ > 8 ? most_of_client_ / 8 : most_of_client_;
    const auto found = places_.try_emplace(client, 0).first;
    if (taken_ >= most_ || found->second >= share) {
      if (found->second == 0) places_.erase(found);
      return false;
    }
    ++found->second;
    ++taken_;
    return true;
  }
  void leave(const Client& client) {
    const auto found = places_.find(client);
    if (--found->second == 0) places_.erase(found);
    --taken_;
  }

 private:
  std::size_t most_, most_of_client_, taken_ = 0;
  std::map<Client, std::size_t> places_;  // none is 0
};

}  // namespace spark
