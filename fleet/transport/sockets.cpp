#include "fleet/transport/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr int kBacklog = 128;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> look_up(const std::string& name, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return fail(Errc::Unavailable, "looking up " + printable(name) + ": " + ::gai_strerror(failed));
  return Addresses(found, ::freeaddrinfo);
}

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

std::string to_string(const Endpoint& endpoint) {
  const bool is_v6 = endpoint.address.find(':') != std::string::npos;
  return (is_v6 ? "[" + endpoint.address + "]" : endpoint.address) + ":" + std::to_string(endpoint.port);
}

Result<UniqueFd> listen_on(const Endpoint& at) {
  const std::string doing = "listening for peers on " + to_string(at);
  const auto found = look_up(at.address, at.port, AI_PASSIVE | AI_NUMERICHOST);
  if (!found) return found.take_error();
  const addrinfo& address = **found;
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(errno, doing);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    const int why = errno;
    auto failed = fail_errno(why, doing, "fleet.listen has to be an address of this host, on a free port");
    failed.value().kind = Errc::Unavailable;
    return failed;
  }
  return socket;
}

Result<UniqueFd> connect_to(const Endpoint& to, std::chrono::milliseconds patience,
                            const Interrupt* interrupt) {
  const std::string doing = "connecting to " + to_string(to);
  const auto found = look_up(to.address, to.port, 0);
  if (!found) return found.take_error();
  int why = EHOSTUNREACH;
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail_errno(errno, doing);
    why = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (why == EINPROGRESS) {
      socklen_t size = sizeof why;
      if (!wait_for(socket.get(), POLLOUT, patience, interrupt)) {
        if (interrupt != nullptr && interrupt->is_set())
          return fail(Errc::Cancelled, doing + ": it is no longer needed");
        why = ETIMEDOUT;
      } else {
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
      }
    }
    if (why != 0) continue;
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return socket;
  }
  auto failed = fail_errno(why, doing);
  if (why != ETIMEDOUT) failed.value().kind = Errc::Unavailable;
  return failed;
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

TcpBytes tcp_bytes_of(int socket) {
  // Of the kernel's tcp_info, which glibc's header has only in part, and linux/tcp.h can't be beside that
  // one.
  constexpr std::size_t kAcknowledgedAt = 120, kReceivedAt = 128, kSize = kReceivedAt + sizeof(std::uint64_t);
  std::array<char, kSize> info{};
  socklen_t size = info.size();
  TcpBytes bytes;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, info.data(), &size) != 0 || size < kSize) return bytes;
  std::memcpy(&bytes.acknowledged, info.data() + kAcknowledgedAt, sizeof bytes.acknowledged);
  std::memcpy(&bytes.received, info.data() + kReceivedAt, sizeof bytes.received);
  return bytes;
}

std::string interface_of(const std::string& address) {
  for (const auto& [own, interface] : addresses_here())
    if (own == address) return interface;
  return "";
}

Result<std::string> address_towards(const Endpoint& other) {
  const auto found = look_up(other.address, other.port, 0);
  if (!found) return found.take_error();
  const addrinfo* to = found->get();
  const UniqueFd socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), to->ai_addr, to->ai_addrlen) != 0) {
    const int number = errno;
    return fail(Errc::Unavailable,
                "finding the way to " + printable(other.address) + ": " + std::strerror(number));
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

Result<std::vector<std::string>> resolve(const std::string& name) {
  const auto found = look_up(name, 0, 0);
  if (!found) return found.take_error();
  std::vector<std::string> all;
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    const std::string text = text_of(address->ai_addr);
    if (!text.empty() && std::ranges::find(all, text) == all.end()) all.push_back(text);
  }
  return all;
}

}  // namespace spark::fleet
