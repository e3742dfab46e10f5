// HTTP/1.1 on a Unix socket, with the caller's identity (SO_PEERCRED), the answer or the stream of events;
// and on an address, without authentication. Independent of volumes and datasets: those belong to the
// handler. Only this folder of the daemon uses Beast.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::api {

namespace asio = boost::asio;

struct Caller {
  pid_t pid = 0;
  uid_t uid = 0;
  std::string address{};    // of a client that the kernel does not identify
  bool may_change = false;  // root
  bool may_use = false;     // root or the group spark-stage
};

struct Request {
  std::string method;             // "GET"
  std::vector<std::string> path;  // {"v1", "volumes", "datasets", "up"}, percent-decoded
  json::object body;              // empty if there was none
  Caller caller;
};

// Returns one line at a time, with its end; none ends the stream. Several streams may send one text.
using EventLine = std::shared_ptr<const std::string>;
using EventSource = std::function<asio::awaitable<EventLine>()>;

struct Answer {
  unsigned status = 200;
  json::value body;
  std::optional<std::string> metrics;  // if set, replaces the body: Prometheus's text format
  EventSource events;                  // if set, the body is this stream
};

using Handler = std::function<asio::awaitable<Answer>(Request)>;

// Limits on the cost of callers other than root, who always gets in.
struct Limits {
  std::uint64_t body = 1 << 20;                // bytes
  std::uint32_t header = 16 << 10;             // bytes
  std::size_t connections = 512;               // concurrent
  std::size_t user_connections = 128;          // of one client; see Shares. More are answered 429
  bool replaces_oldest = false;                // instead, the oldest connection is closed
  unsigned user_requests_per_second = 100;     // on average; more wait
  std::size_t user_answers = 32 << 20;         // bytes of answers that a client has not read; others wait
  std::size_t answer_per_request = 128 << 10;  // bytes of an answer that count as one more request
  std::chrono::milliseconds slowest{30'000};   // to send a request, or to receive an answer
};

// {"error": …} with the HTTP status of its kind.
Answer error_answer(const Error& error);

class Server {
 public:
  // Whether a daemon answers on the socket.
  static bool is_answered(const std::filesystem::path& socket);
  // Creates the socket: owner root, the group if it exists, mode 0660. Unavailable: another daemon answers on
  // it.
  static Result<std::shared_ptr<Server>> listen(asio::any_io_executor executor,
                                                const std::filesystem::path& socket, const std::string& group,
                                                Handler handler, Limits limits = {});
  // Every client that reaches the address may use `handler`. `address`: IPv4 or IPv6.
  static Result<std::shared_ptr<Server>> listen_on_address(asio::any_io_executor executor,
                                                           const std::string& address, std::uint16_t port,
                                                           Handler handler, Limits limits);
  virtual ~Server() = default;
  virtual void start() = 0;
  // Removes the socket; open requests are still answered.
  virtual void stop() = 0;
};

// "/v1/a%2Fb?x" → {"v1", "a/b"}; Invalid for a bad escape.
Result<std::vector<std::string>> decode_path(std::string_view target);

}  // namespace spark::api
