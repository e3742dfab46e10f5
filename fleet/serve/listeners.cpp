#include "fleet/serve/listeners.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace spark::fleet {
namespace {

constexpr std::chrono::seconds kBetweenTries{1};

bool is_missing(const Error& error) {
  return error.number == EADDRNOTAVAIL;
}

}  // namespace

Result<> Listeners::open() {
  std::vector<Error> errors = try_missing();
  const auto wrong = std::ranges::find_if_not(errors, is_missing);
  if (wrong != errors.end()) return fail(std::move(*wrong));
  if (sockets_.empty() && !errors.empty()) return fail(std::move(errors.front()));
  return {};
}

void Listeners::open_missing(SteadyTime now) {
  if (missing_.empty() || now - tried_at_ < kBetweenTries) return;
  tried_at_ = now;
  try_missing();
}

void Listeners::close() {
  for (const UniqueFd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  sockets_.clear();
}

std::vector<Error> Listeners::try_missing() {
  std::vector<Error> errors;
  std::string trouble;
  for (Endpoint& at : std::exchange(missing_, {})) {
    auto socket = listen_on(at);
    if (socket) {
      sockets_.push_back(std::move(*socket));
      continue;
    }
    trouble +=
        (trouble.empty() ? "" : "; ") + ("peers are not served at " + to_string(at) + ": ") +
        (is_missing(socket.error()) ? "this host does not have that address now" : socket.error().what);
    errors.push_back(std::move(socket.error()));
    missing_.push_back(std::move(at));
  }
  const std::scoped_lock lock(mutex_);
  trouble_ = std::move(trouble);
  return errors;
}

std::string Listeners::trouble() const {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

}  // namespace spark::fleet
