#include "nvmetcp/resolve.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.hpp"
#include "base/network/addresses.hpp"
#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

constexpr const char* kCheckNetwork = "check the address, the cable and the route: `ip route get ADDRESS`";
constexpr std::size_t kMostAddresses = 4;

std::string numeric_text(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

// "fe80::1%eth0" without its zone.
std::string without_zone(const std::string& address) {
  return address.substr(0, address.find('%'));
}

// The number of the interface that an address names by its name or number; 0: none that is known.
unsigned zone_of(const std::string& address) {
  const auto mark = address.find('%');
  if (mark == std::string::npos) return 0;
  const std::string zone = address.substr(mark + 1);
  const unsigned index = ::if_nametoindex(zone.c_str());
  return index != 0 ? index : parse_number<unsigned>(zone).value_or(0);
}

// A link-local address is of another machine on each link. An interface without that name may have been
// renamed since the connection was made.
bool is_other_link(const std::string& a, const std::string& b) {
  const unsigned one = zone_of(a), other = zone_of(b);
  return one != 0 && other != 0 && one != other;
}

Result<UniqueFd> open_socket(int family, const std::string& interface) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(errno, "opening a socket");
  if (interface.empty()) return fd;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) == 0) {
    return fd;
  }
  if (errno == ENODEV) {
    return fail(Errc::Invalid, "network interface " + printable(interface) + " does not exist on this host",
                "`ip -brief link` lists the names");
  }
  return fail_errno(errno, "using network interface " + printable(interface));
}

// The errno that a non-blocking connect ended with; ETIMEDOUT past the deadline.
int finish_connect(int fd, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    pollfd polled{fd, POLLOUT, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int number = 0;
    socklen_t length = sizeof number;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length) == 0 ? number : errno;
  }
}

}  // namespace

Result<std::vector<Portal>> resolve(const Portal& portal) {
  auto list = look_up(portal.address, portal.port, AI_NUMERICHOST);
  if (!list) list = look_up(portal.address, portal.port, AI_ADDRCONFIG);
  if (!list) {
    list.error().hint = "check the name and this host's name service, or give the IP address";
    return list.take_error();
  }
  std::vector<Portal> numeric;
  for (const addrinfo* one = list->get(); one != nullptr && numeric.size() < kMostAddresses;
       one = one->ai_next) {
    Portal found{numeric_text(*one), portal.port};
    const bool known = std::find(numeric.begin(), numeric.end(), found) != numeric.end();
    if (!found.address.empty() && !known) numeric.push_back(std::move(found));
  }
  return numeric;
}

bool is_numeric(const std::string& address) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, address.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, without_zone(address).c_str(), &ignored) == 1;
}

bool same_address(const std::string& a, const std::string& b) {
  if (a == b) return true;
  for (const int family : {AF_INET, AF_INET6}) {
    in6_addr left{}, right{};
    if (::inet_pton(family, without_zone(a).c_str(), &left) == 1 &&
        ::inet_pton(family, without_zone(b).c_str(), &right) == 1) {
      return std::memcmp(&left, &right, sizeof left) == 0 && !is_other_link(a, b);
    }
  }
  return false;
}

Error explain_unreachable(int number, const std::string& portal, const std::string& interface) {
  const std::string doing =
      "reaching " + portal + (interface.empty() ? "" : " through " + printable(interface));
  switch (number) {
    case ECONNREFUSED:
      return {Errc::Unavailable, doing + ": connection refused",
              "is the target's NVMe/TCP export switched on?"};
    case ETIMEDOUT:
      return {Errc::Unavailable, doing + ": no answer", kCheckNetwork};
    case EACCES:
    case EPERM:
      return {Errc::Unavailable, doing + ": " + std::strerror(number), "a firewall of this host forbids it"};
    default:
      return {Errc::Unavailable, doing + ": " + std::strerror(number), kCheckNetwork};
  }
}

namespace {

Result<UniqueFd> connect_to(const Portal& numeric, const std::string& interface,
                            std::chrono::milliseconds deadline) {
  const auto list = look_up(numeric.address, numeric.port, AI_NUMERICHOST);
  if (!list) return fail(Errc::Invalid, to_string(numeric) + " is no numeric address");
  const addrinfo& to = **list;
  auto socket = open_socket(to.ai_family, interface);
  if (!socket || ::connect(socket->get(), to.ai_addr, to.ai_addrlen) == 0) return socket;
  const int number = errno == EINPROGRESS ? finish_connect(socket->get(), deadline) : errno;
  if (number == 0) return socket;
  return fail(explain_unreachable(number, to_string(numeric), interface));
}

}  // namespace

Result<> reach(const Portal& numeric, const std::string& interface, std::chrono::milliseconds deadline) {
  auto connected = connect_to(numeric, interface, deadline);
  return connected ? Result<>() : connected.take_error();
}

Result<unsigned> negotiated_packet(const Portal& numeric, const std::string& interface,
                                   std::chrono::milliseconds deadline) {
  constexpr unsigned kIpv4 = 20, kIpv6 = 40, kTcp = 20, kTimestamps = 12;
  auto connected = connect_to(numeric, interface, deadline);
  if (!connected) return connected.take_error();
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(connected->get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
    return fail_errno(errno, "asking for the segment size of " + to_string(numeric));
  const bool is_ipv6 = numeric.address.find(':') != std::string::npos;
  const bool has_timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  return info.tcpi_snd_mss + (has_timestamps ? kTimestamps : 0) + kTcp + (is_ipv6 ? kIpv6 : kIpv4);
}

}  // namespace spark::nvmetcp
