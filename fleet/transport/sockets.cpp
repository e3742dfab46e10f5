#include "fleet/transport/sockets.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/network/addresses.hpp"

namespace spark::fleet {
namespace {

constexpr int kBacklog = 128;

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

}  // namespace spark::fleet
