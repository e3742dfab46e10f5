// HTTP/1.1 on a stream socket of any kind: limits on connections, reading of requests, writing of answers and
// events. Private to this folder.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/api/callers.hpp"
#include "daemon/api/server.hpp"
#include "daemon/launch.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::api {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

// The answer of `handler` for a permitted caller, otherwise an error.
asio::awaitable<Answer> answer_message(const Handler& handler, const HttpRequest& message, Caller caller);
HttpResponse to_response(Answer answer, unsigned version, bool keep_alive);
Answer too_large(const Limits& limits, bool is_header);
Answer too_many(const Caller& caller);

// Kept alive by its coroutines.
template <class Protocol>
class HttpServer : public Server, public std::enable_shared_from_this<HttpServer<Protocol>> {
 public:
  using Socket = typename Protocol::socket;
  using Identify = std::function<Result<Caller>(Socket&)>;

  HttpServer(asio::any_io_executor executor, Limits limits, Identify identify, Handler handler)
      : acceptor_(executor),
        retry_(executor),
        limits_(limits),
        callers_(limits),
        identify_(std::move(identify)),
        handler_(std::move(handler)) {}

  Result<> bind(const typename Protocol::endpoint& endpoint, const std::string& name) {
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error && endpoint.protocol().family() != AF_UNIX)
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    return error ? fail(Errc::Failed, "binding " + name + ": " + error.message()) : Result<>{};
  }
  Result<> listen(const std::string& name) {
    boost::system::error_code error;
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error ? fail(Errc::Failed, "listening on " + name + ": " + error.message()) : Result<>{};
  }

  void start() override { run(accept_all(this->shared_from_this())); }
  void stop() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  using Self = std::shared_ptr<HttpServer>;
  using Stream = boost::beast::basic_stream<Protocol, asio::any_io_executor>;
  static constexpr std::uint64_t kLargeBody = 64 << 10;

  void run(asio::awaitable<void> work) {
    launch(acceptor_.get_executor(), "a connection to the API", std::move(work));
  }

  asio::awaitable<void> accept_all(Self self) {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(kToken);
      if (!error) {
        run(serve(self, std::move(socket)));
      } else if (acceptor_.is_open()) {
        co_await pause();  // out of descriptors
      }
    }
  }

  asio::awaitable<void> pause() {
    retry_.expires_after(std::chrono::milliseconds(100));
    co_await retry_.wait();
  }

  struct Connection {
    Stream stream;
    Caller caller;
    bool has_left = false;
  };

  asio::awaitable<void> serve(Self /*keeps this alive*/, Socket socket) {
    const auto caller = identify_(socket);
    if (!caller) co_return;
    Connection connection{Stream(std::move(socket)), *caller};
    if (!enter(connection)) {
      HttpResponse refusal = to_response(too_many(*caller), 11, false);
      co_await write(connection.stream, refusal);
      co_return;
    }
    struct Leaving {  // also if an exception ends it
      HttpServer& server;
      Connection& connection;
      ~Leaving() { server.leave(connection); }
    };
    const Leaving leaving{*this, connection};
    co_await converse(connection.stream, *caller);
  }

  bool enter(Connection& connection) {
    bool has_place = callers_.enter(connection.caller);
    if (!has_place && limits_.replaces_oldest && !connections_.empty()) {
      Connection& oldest = *connections_.front();
      leave(oldest);
      oldest.stream.close();  // its coroutine ends
      has_place = callers_.enter(connection.caller);
    }
    if (has_place) connections_.push_back(&connection);
    return has_place;
  }

  void leave(Connection& connection) {
    if (std::exchange(connection.has_left, true)) return;
    connections_.remove(&connection);
    callers_.leave(connection.caller);
  }

  asio::awaitable<void> converse(Stream& stream, Caller caller) {
    namespace http = boost::beast::http;
    boost::beast::flat_buffer buffer;
    while (acceptor_.is_open()) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(limits_.body);
      parser.header_limit(limits_.header);
      stream.expires_after(limits_.slowest);
      auto [read_error, read] = co_await http::async_read_header(stream, buffer, parser, kToken);
      // A user's large bodies take room like answers do. Small ones are read at once.
      const bool is_large =
          !read_error && (parser.chunked() || parser.content_length().value_or(0) >= kLargeBody);
      std::optional<Room> room;
      bool has_turn = false;
      if (is_large) has_turn = co_await wait_for_turn(stream, caller);
      if (is_large && !has_turn) co_return;
      if (is_large) room.emplace(*this, caller);
      if (!read_error && parser.get()[http::field::expect] == "100-continue") {
        http::response<http::empty_body> go_on(http::status::continue_, 11);
        stream.expires_after(limits_.slowest);
        const auto [error, written] = co_await http::async_write(stream, go_on, kToken);
        read_error = error;
      }
      if (!read_error) {
        stream.expires_after(limits_.slowest);
        const auto [body_error, body] = co_await http::async_read(stream, buffer, parser, kToken);
        read_error = body_error;
      }
      const bool is_header = read_error == http::error::header_limit;
      if (is_header || read_error == http::error::body_limit) {
        HttpResponse refusal = to_response(too_large(limits_, is_header), 11, false);
        co_await write(stream, refusal);
        co_return;
      }
      if (read_error) co_return;
      const bool keep_alive = parser.get().keep_alive();
      if (!has_turn) has_turn = co_await wait_for_turn(stream, caller);
      if (!has_turn) co_return;
      if (!room) room.emplace(*this, caller);
      Answer answer = co_await answer_message(handler_, parser.get(), caller);
      if (answer.events) {
        room->keep(0);
        co_await write_events(stream, std::move(answer.events));
        co_return;
      }
      HttpResponse response = to_response(std::move(answer), parser.get().version(), keep_alive);
      room->keep(response.body().size());
      if (!co_await write(stream, response) || !keep_alive) co_return;
    }
  }

  // False: the client has left.
  asio::awaitable<bool> wait_for_turn(Stream& stream, Caller caller) {
    auto wait = callers_.until_turn(caller, steady_now(acceptor_.get_executor()));
    do {
      bool has_left = false;
      if (wait > wait.zero()) has_left = co_await is_closed_within(stream, wait);
      if (has_left) {
        callers_.give_turn_back(caller);
        co_return false;
      }
      wait = callers_.until_room(caller, steady_now(acceptor_.get_executor()));
    } while (wait > wait.zero());
    co_return true;
  }

  asio::awaitable<bool> is_closed_within(Stream& stream, SteadyTime::duration time) {
    using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
    Timer timer(acceptor_.get_executor());
    timer.expires_at(steady_now(acceptor_.get_executor()) + time);
    auto over = timer.wait();
    auto left = wait_until_closed(stream);
    const auto first = co_await (std::move(over) || std::move(left));
    co_return first.index() != 0;
  }

  // What an answer takes of its caller's share of the memory.
  class Room {
   public:
    Room(HttpServer& server, const Caller& caller) : server_(server), caller_(caller) {}
    ~Room() { server_.callers_.drop_answer(caller_, bytes_); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    void keep(std::size_t bytes) {
      bytes_ = bytes;
      server_.callers_.keep_answer(caller_, bytes, steady_now(server_.acceptor_.get_executor()));
    }

   private:
    HttpServer& server_;
    Caller caller_;
    std::size_t bytes_ = Callers::kExpected;
  };

  asio::awaitable<bool> write(Stream& stream, HttpResponse& response) {
    stream.expires_after(limits_.slowest);
    const auto [error, written] = co_await boost::beast::http::async_write(stream, response, kToken);
    co_return !error;
  }

  asio::awaitable<void> write_events(Stream& stream, EventSource events) {
    namespace http = boost::beast::http;
    http::response<http::empty_body> head(http::status::ok, 11);
    head.set(http::field::content_type, "application/x-ndjson");
    head.chunked(true);
    http::response_serializer<http::empty_body> serializer(head);
    stream.expires_after(limits_.slowest);
    const auto [head_error, head_size] = co_await http::async_write_header(stream, serializer, kToken);
    if (head_error) co_return;
    for (;;) {
      const auto news = co_await next_event(stream, events);
      if (!news) co_return;  // the client has left
      const EventLine& line = *news;
      if (!line) break;
      const auto chunk = http::make_chunk(asio::buffer(*line));
      stream.expires_after(limits_.slowest);
      const auto [error, size] = co_await asio::async_write(stream, chunk, kToken);
      if (error) co_return;
    }
    const auto last = http::make_chunk_last();
    co_await asio::async_write(stream, last, kToken);
  }

  // None if the client leaves first: a job may be silent for hours, and the connection counts against the
  // limits.
  asio::awaitable<std::optional<EventLine>> next_event(Stream& stream, const EventSource& events) {
    using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
    auto event = events();
    auto left = wait_until_closed(stream);
    auto first = co_await (std::move(event) || std::move(left));
    if (first.index() != 0) co_return std::nullopt;
    co_return std::move(std::get<0>(first));
  }

  // A client that only ends its own side, with shutdown(SHUT_WR), still reads: the kernel reports an error
  // here when both sides are closed.
  static asio::awaitable<void> wait_until_closed(Stream& stream) {
    co_await stream.socket().async_wait(Socket::wait_error, kToken);
  }

  asio::basic_socket_acceptor<Protocol, asio::any_io_executor> acceptor_;
  Timer retry_;
  Limits limits_;
  Callers callers_;
  Identify identify_;
  Handler handler_;
  std::list<Connection*> connections_;  // the oldest first
};

}  // namespace spark::api
