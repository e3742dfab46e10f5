#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "base/file.hpp"
#include "bench/facts/storage_facts.hpp"

namespace spark::bench {
namespace {

// The port has no effect: connecting a datagram socket only looks up the route in the kernel.
constexpr const char* kAnyPort = "4420";

// Empty for an address that is none of IP.
std::string numeric_text(const sockaddr* address) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return {};
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = "";
  (void)::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

std::string nic_towards(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), kAnyPort, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> there(found, ::freeaddrinfo);
  const UniqueFd socket(::socket(there->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), there->ai_addr, there->ai_addrlen) != 0) return {};
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* here = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.get(), here, &size) != 0) return {};
  const std::string own = numeric_text(here);
  ifaddrs* list = nullptr;
  if (own.empty() || ::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (numeric_text(entry->ifa_addr) == own) return entry->ifa_name;
  }
  return {};
}

}  // namespace spark::bench
