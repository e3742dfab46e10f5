#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "bench/facts/storage_facts.hpp"

namespace spark::bench {
namespace {

// The port has no effect: connecting a datagram socket only looks up the route in the kernel.
constexpr unsigned short kAnyPort = 4420;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

bool parse(const std::string& text, Address& address, socklen_t& size) {
  std::memset(&address, 0, sizeof address);
  if (::inet_pton(AF_INET, text.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(kAnyPort);
    size = sizeof address.v4;
    return true;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &address.v6.sin6_addr) != 1) return false;
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons(kAnyPort);
  size = sizeof address.v6;
  return true;
}

bool is_same(const Address& a, const sockaddr* b) {
  if (b == nullptr || a.any.sa_family != b->sa_family) return false;
  Address other;
  std::memset(&other, 0, sizeof other);
  if (b->sa_family == AF_INET) {
    std::memcpy(&other.v4, b, sizeof other.v4);
    return a.v4.sin_addr.s_addr == other.v4.sin_addr.s_addr;
  }
  std::memcpy(&other.v6, b, sizeof other.v6);
  return std::memcmp(&a.v6.sin6_addr, &other.v6.sin6_addr, sizeof a.v6.sin6_addr) == 0;
}

}  // namespace

std::string nic_towards(const std::string& address) {
  Address there;
  socklen_t size = 0;
  if (!parse(address, there, size)) return {};
  const UniqueFd socket(::socket(there.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), &there.any, size) != 0) return {};
  Address here;
  size = sizeof here;
  if (::getsockname(socket.get(), &here.any, &size) != 0) return {};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((here.any.sa_family == AF_INET || here.any.sa_family == AF_INET6) && is_same(here, entry->ifa_addr)) {
      return entry->ifa_name;
    }
  }
  return {};
}

}  // namespace spark::bench
