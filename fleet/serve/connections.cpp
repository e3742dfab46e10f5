#include "fleet/serve/connections.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <memory>

#include "base/threads.hpp"

namespace spark::fleet {

Connections::~Connections() {
  for (Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
  for (Connection& connection : connections_) connection.thread.join();
}

bool Connections::end(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kTick{10};
  for (Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (join_ended(); !connections_.empty(); join_ended()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kTick);
  }
  return true;
}

bool Connections::open(UniqueFd socket, const std::string& client) {
  join_ended();
  UniqueFd second(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!second || !shares_.enter(client)) return false;
  Connection& connection = connections_.emplace_back();
  connection.client = client;
  connection.socket = std::move(second);
  const auto served = std::make_shared<UniqueFd>(std::move(socket));
  connection.thread = start_thread([this, served, &connection] {
    serve_(std::move(*served));
    ::shutdown(connection.socket.get(),
               SHUT_RDWR);  // the second descriptor would keep it open until the join
    connection.has_ended = true;
  });
  if (connection.thread.joinable()) return true;
  connections_.pop_back();
  shares_.leave(client);
  return false;
}

void Connections::join_ended() {
  std::erase_if(connections_, [this](Connection& connection) {
    if (!connection.has_ended) return false;
    connection.thread.join();
    shares_.leave(connection.client);
    return true;
  });
}

}  // namespace spark::fleet
