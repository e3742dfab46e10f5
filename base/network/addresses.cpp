#include "base/network/addresses.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark {
namespace {

// A socket that listens on :: has IPv4 hosts as ::ffff:10.0.0.1.
std::string text_of(const sockaddr* address) {
  sockaddr_in plain{};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    plain.sin_family = AF_INET;
    std::memcpy(&plain.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof plain.sin_addr);
    address = reinterpret_cast<const sockaddr*>(&plain);
  }
  char text[NI_MAXHOST] = "";
  const socklen_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

// Each with its interface.
std::vector<std::pair<std::string, std::string>> addresses_here() {
  std::vector<std::pair<std::string, std::string>> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool is_ip = one->ifa_addr != nullptr &&
                       (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6);
    if (is_ip) all.emplace_back(text_of(one->ifa_addr), one->ifa_name);
  }
  return all;
}

}  // namespace

Result<AddressList> look_up(const std::string& name, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed == 0) return AddressList(found, &::freeaddrinfo);
  const char* why = failed == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failed);
  return fail(Errc::Unavailable, "looking up " + printable(name) + ": " + why);
}

Result<std::vector<std::string>> addresses_behind(const std::string& name) {
  const auto found = look_up(name, 0, 0);
  if (!found) return found.take_error();
  std::vector<std::string> all;
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    const std::string text = text_of(address->ai_addr);
    if (!text.empty() && std::ranges::find(all, text) == all.end()) all.push_back(text);
  }
  return all;
}

std::string address_of(int socket) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&from), &size) != 0) return "";
  return text_of(reinterpret_cast<sockaddr*>(&from));
}

std::string local_address_of(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return "";
  return text_of(reinterpret_cast<sockaddr*>(&at));
}

std::string interface_of(const std::string& address) {
  for (const auto& [own, interface] : addresses_here())
    if (own == address) return interface;
  return "";
}

Result<std::string> address_towards(const std::string& other) {
  constexpr std::uint16_t kAnyPort = 1;  // it has no effect: only the route is looked up
  const auto found = look_up(other, kAnyPort, 0);
  if (!found) return found.take_error();
  const addrinfo* to = found->get();
  const UniqueFd socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), to->ai_addr, to->ai_addrlen) != 0) {
    const int number = errno;
    return fail(Errc::Unavailable, "finding the way to " + printable(other) + ": " + std::strerror(number));
  }
  return local_address_of(socket.get());
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> all;
  for (const auto& [own, interface] : addresses_here())
    if (!own.starts_with("127.") && own != "::1" && !own.starts_with("fe80:")) all.push_back(own);
  std::ranges::sort(all);
  return all;
}

bool is_any_address(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

}  // namespace spark
