#include "daemon/api/server.hpp"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <charconv>

#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::api {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Local = asio::local::stream_protocol;
using Stream = beast::basic_stream<Local, asio::any_io_executor>;

constexpr std::uint64_t kLargestBody = 1 << 20;
constexpr std::uint32_t kLargestHeader = 16 << 10;
constexpr std::size_t kMostConnections = 200;
// A caller that takes longer to send a request, or to take an answer, is cut off.
constexpr std::chrono::seconds kSlowest{30};

std::optional<gid_t> group_id(const std::string& name) {
  const group* found = ::getgrnam(name.c_str());
  if (found == nullptr) return std::nullopt;
  return found->gr_gid;
}

Result<Caller> identify(int fd, std::optional<gid_t> users) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail_errno(errno, "asking who calls");
  }
  std::vector<gid_t> groups(256);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) bytes = 0;
  groups.resize(bytes / sizeof(gid_t));
  groups.push_back(peer.gid);

  Caller caller;
  caller.pid = peer.pid;
  caller.uid = peer.uid;
  caller.may_change = peer.uid == 0 || peer.uid == ::geteuid();
  caller.may_use =
      caller.may_change || (users && std::find(groups.begin(), groups.end(), *users) != groups.end());
  return caller;
}

using TextResponse = http::response<http::string_body>;

TextResponse text_response(const Answer& answer, unsigned version, bool keep_alive) {
  TextResponse response(http::int_to_status(answer.status), version);
  response.set(http::field::server, std::string("spark-staged/") + kVersion);
  response.set(http::field::content_type, "application/json");
  response.keep_alive(keep_alive);
  response.body() = json::serialize(answer.body) + "\n";
  response.prepare_payload();
  return response;
}

Answer handler_failure(const std::exception& failure) {
  return error_answer({Errc::Failed, std::string("the daemon could not answer: ") + failure.what(),
                       "this is a defect; `journalctl -u spark-staged` has more"});
}

class BeastServer final : public Server {
 public:
  BeastServer(asio::any_io_executor executor, std::filesystem::path socket, std::optional<gid_t> users,
              Handler handler)
      : acceptor_(executor),
        retry_(executor),
        path_(std::move(socket)),
        users_(users),
        handler_(std::move(handler)) {}

  Result<> open() {
    boost::system::error_code error;
    acceptor_.open(Local(), error);
    if (!error) acceptor_.bind(Local::endpoint(path_.native()), error);
    if (error) return fail(Errc::Failed, "binding " + path_.native() + ": " + error.message());
    if (users_ && ::chown(path_.c_str(), static_cast<uid_t>(-1), *users_) != 0) {
      return fail_errno(errno, "giving " + path_.native() + " to the group spark-stage");
    }
    ::chmod(path_.c_str(), 0660);
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return fail(Errc::Failed, "listening on " + path_.native() + ": " + error.message());
    return {};
  }

  void start() override { asio::co_spawn(acceptor_.get_executor(), accept_all(), asio::detached); }

  void stop() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    ::unlink(path_.c_str());
  }

 private:
  asio::awaitable<void> accept_all() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(kToken);
      if (error || connections_ >= kMostConnections) {
        // Out of descriptors, or too many callers: those that are there come first.
        retry_.expires_after(std::chrono::milliseconds(100));
        co_await retry_.async_wait(kToken);
        continue;
      }
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(Local::socket socket) {
    ++connections_;
    const auto caller = identify(socket.native_handle(), users_);
    Stream stream(std::move(socket));
    if (caller) co_await converse(stream, *caller);
    --connections_;
  }

  asio::awaitable<void> converse(Stream& stream, Caller caller) {
    beast::flat_buffer buffer;
    for (;;) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(kLargestBody);
      parser.header_limit(kLargestHeader);
      stream.expires_after(kSlowest);
      const auto [read_error, read] = co_await http::async_read(stream, buffer, parser, kToken);
      if (read_error == http::error::body_limit) {
        const Answer too_large{
            413, json::object{{"error", to_json(Error{Errc::Invalid, "the body is too large", ""})}}, {}};
        co_await write(stream, too_large, 11, false);
        co_return;
      }
      if (read_error) co_return;
      const bool keep_alive = parser.get().keep_alive();
      Answer answer = co_await ask_handler(parser.get(), caller);
      if (answer.events) {
        co_await write_events(stream, std::move(answer.events));
        co_return;
      }
      if (!co_await write(stream, answer, parser.get().version(), keep_alive) || !keep_alive) co_return;
    }
  }

  asio::awaitable<Answer> ask_handler(const http::request<http::string_body>& message, Caller caller) {
    if (!caller.may_use) {
      Answer denied =
          error_answer({Errc::Denied, "uid " + std::to_string(caller.uid) + " may not use spark-stage",
                        "become a member of the group spark-stage, or root"});
      co_return denied;
    }
    Request request;
    request.method = std::string(message.method_string());
    request.caller = caller;
    auto path = decode_path(std::string_view(message.target().data(), message.target().size()));
    if (!path) co_return error_answer(path.error());
    request.path = std::move(*path);
    if (!message.body().empty()) {
      auto body = parse_json_object(message.body());
      if (!body) co_return error_answer(body.error());
      request.body = std::move(*body);
    }
    try {
      co_return co_await handler_(std::move(request));
    } catch (const std::exception& failure) {
      log::error(std::string("answering ") + std::string(message.target()) + ": " + failure.what());
      co_return handler_failure(failure);
    }
  }

  asio::awaitable<bool> write(Stream& stream, const Answer& answer, unsigned version, bool keep_alive) {
    TextResponse response = text_response(answer, version, keep_alive);
    stream.expires_after(kSlowest);
    const auto [error, written] = co_await http::async_write(stream, response, kToken);
    co_return !error;
  }

  asio::awaitable<void> write_events(Stream& stream, EventSource events) {
    http::response<http::empty_body> head(http::status::ok, 11);
    head.set(http::field::content_type, "application/x-ndjson");
    head.chunked(true);
    http::response_serializer<http::empty_body> serializer(head);
    stream.expires_after(kSlowest);
    const auto [head_error, head_size] = co_await http::async_write_header(stream, serializer, kToken);
    if (head_error) co_return;
    for (;;) {
      const std::optional<json::object> event = co_await events();
      if (!event) break;
      const std::string line = json::serialize(*event) + "\n";
      const auto chunk = http::make_chunk(asio::buffer(line));
      stream.expires_after(kSlowest);
      const auto [error, size] = co_await asio::async_write(stream, chunk, kToken);
      if (error) co_return;
    }
    const auto last = http::make_chunk_last();
    co_await asio::async_write(stream, last, kToken);
  }

  asio::basic_socket_acceptor<Local, asio::any_io_executor> acceptor_;
  asio::steady_timer retry_;
  std::filesystem::path path_;
  std::optional<gid_t> users_;
  Handler handler_;
  std::size_t connections_ = 0;
};

// A socket file that nobody listens on is left over from a daemon that was killed.
Result<> clear_leftover(const std::filesystem::path& socket, asio::any_io_executor executor) {
  std::error_code ignored;
  std::filesystem::create_directories(socket.parent_path(), ignored);
  Local::socket probe(executor);
  boost::system::error_code error;
  probe.connect(Local::endpoint(socket.native()), error);
  if (!error) {
    return fail(Errc::Unavailable, "another spark-staged answers on " + socket.native(),
                "stop it first (`systemctl stop spark-staged`), or use --socket");
  }
  ::unlink(socket.c_str());
  return {};
}

}  // namespace

Answer error_answer(const Error& error) {
  const auto status = [&]() -> unsigned {
    switch (error.kind) {
      case Errc::Invalid:
        return 400;
      case Errc::Denied:
        return 403;
      case Errc::NotFound:
        return 404;
      case Errc::Refused:
      case Errc::Mismatch:
        return 409;
      case Errc::Unavailable:
        return 503;
      case Errc::NoSpace:
        return 507;
      case Errc::TimedOut:
        return 504;
      default:
        return 500;
    }
  }();
  Answer answer;
  answer.status = status;
  answer.body = json::object{{"error", to_json(error)}};
  return answer;
}

Result<std::unique_ptr<Server>> Server::listen(asio::any_io_executor executor,
                                               const std::filesystem::path& socket, const std::string& group,
                                               Handler handler) {
  if (auto cleared = clear_leftover(socket, executor); !cleared) {
    return tl::unexpected<Error>(std::move(cleared.error()));
  }
  auto server = std::make_unique<BeastServer>(executor, socket, group_id(group), std::move(handler));
  if (auto opened = server->open(); !opened) return tl::unexpected<Error>(std::move(opened.error()));
  return std::unique_ptr<Server>(std::move(server));
}

Result<std::vector<std::string>> decode_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::vector<std::string> parts;
  for (const std::string& raw : split(target, '/')) {
    if (raw.empty()) continue;
    std::string part;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '%') {
        part += raw[i];
        continue;
      }
      unsigned code = 0;
      const char* digits = raw.data() + i + 1;
      if (i + 2 >= raw.size() || std::from_chars(digits, digits + 2, code, 16).ptr != digits + 2) {
        return fail(Errc::Invalid, "a bad %-escape in the path " + printable(target));
      }
      part += static_cast<char>(code);
      i += 2;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace spark::api
