#include "cli/client/client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "base/version.hpp"

namespace spark::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Stream = asio::local::stream_protocol;
using Parser = http::response_parser<http::string_body>;

constexpr std::size_t kMaxAnswer = 64 << 20;
constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::chrono::milliseconds kLook{100};  // how soon a stop flag is seen
constexpr char kLookAtDaemon[] = "see `systemctl status spark-staged` and `journalctl -u spark-staged`";

tl::unexpected<Error> connect_failure(const error_code& error, const std::string& socket) {
  const std::string what = "asking spark-staged on " + socket + ": ";
  const std::string start = "start it with `systemctl start spark-staged`";
  switch (error.value()) {
    case ENOENT:
      return fail(Errc::Unavailable, what + "there is no such socket, the daemon is not running",
                  start + ", or name its socket with --socket");
    case ECONNREFUSED:
      return fail(Errc::Unavailable, what + "no process listens there, the daemon is not running", start);
    case EACCES:
    case EPERM:
      return fail(Errc::Denied, what + "permission denied",
                  "run as root, or join the group: `sudo usermod -aG spark-stage USER`, then log in again");
    case ENAMETOOLONG:
    case ENOTSOCK:
      return fail(Errc::Invalid, what + error.message(), "check --socket and $SPARK_STAGE_SOCKET");
    default:
      return fail(Errc::Unavailable, what + error.message(), kLookAtDaemon);
  }
}

// One request on one connection. Asynchronous operations underneath, because only they can have deadlines.
class Exchange {
 public:
  Exchange(const std::string& name, const ClientDeadlines& deadlines, const StopFlag* stop)
      : name_(name), deadlines_(deadlines), stop_(stop), socket_(context_) {}

  Result<> open_and_send(const Request& request) {
    // An over-long path throws in the endpoint's constructor.
    if (name_.size() >= sizeof(sockaddr_un::sun_path)) {
      return connect_failure({ENAMETOOLONG, boost::system::system_category()}, name_);
    }
    const Stream::endpoint endpoint(name_);
    const error_code connected =
        await(deadlines_.connect, [&](auto done) { socket_.async_connect(endpoint, std::move(done)); });
    if (connected == asio::error::operation_aborted) return aborted(deadlines_.connect);
    if (connected) return connect_failure(connected, name_);

    http::request<http::string_body> message(http::string_to_verb(request.method), request.target, 11);
    message.set(http::field::host, "localhost");
    message.set(http::field::user_agent, std::string("spark-stage/") + kVersion);
    message.keep_alive(false);
    if (!request.body.empty()) message.set(http::field::content_type, "application/json");
    message.body() = request.body;
    message.prepare_payload();
    const error_code sent = await(deadlines_.answer, [&](auto done) {
      http::async_write(socket_, message, [done](error_code error, std::size_t) mutable { done(error); });
    });
    // A daemon that refuses a connection answers before it reads: that answer is still there.
    const bool may_have_answered = sent == asio::error::broken_pipe || sent == asio::error::connection_reset;
    return sent && !may_have_answered ? broken(sent, deadlines_.answer) : Result<>();
  }

  Result<> read_header(Parser& parser) {
    return read(deadlines_.answer,
                [&](auto done) { http::async_read_header(socket_, buffer_, parser, std::move(done)); });
  }

  Result<> read_rest(Parser& parser, Duration deadline) {
    return read(deadline, [&](auto done) { http::async_read(socket_, buffer_, parser, std::move(done)); });
  }

  Result<> read_some(Parser& parser, Duration silence) {
    return read(silence,
                [&](auto done) { http::async_read_some(socket_, buffer_, parser, std::move(done)); });
  }

  tl::unexpected<Error> ended_early() const {
    return fail(Errc::Unavailable,
                "spark-staged on " + name_ + " closed the connection in the middle of an answer",
                kLookAtDaemon);
  }

 private:
  template <class Start>
  Result<> read(Duration deadline, Start start) {
    const error_code error = await(deadline, [&](auto done) {
      start([done](error_code result, std::size_t) mutable { done(result); });
    });
    return error ? broken(error, deadline) : Result<>();
  }

  // Runs one operation to its end. Past the deadline, or when asked to stop: operation_aborted.
  template <class Start>
  error_code await(Duration deadline, Start start) {
    std::optional<error_code> result;
    start([&result](error_code error) { result = error; });
    const auto end = std::chrono::steady_clock::now() + deadline;
    context_.restart();
    while (!result) {
      context_.run_one_for(kLook);
      if (context_.stopped()) context_.restart();
      stopped_ = stop_ != nullptr && stop_->load();
      if (!result && (stopped_ || std::chrono::steady_clock::now() >= end)) {
        error_code ignored;
        socket_.close(ignored);
        context_.restart();
        context_.run();
        return asio::error::operation_aborted;
      }
    }
    return *result;
  }

  tl::unexpected<Error> aborted(Duration deadline) const {
    if (stopped_) return fail(Errc::Cancelled, "interrupted");
    return fail(Errc::TimedOut, "spark-staged on " + name_ + " was silent for " + format_duration(deadline),
                kLookAtDaemon);
  }

  tl::unexpected<Error> broken(const error_code& error, Duration deadline) const {
    if (error == asio::error::operation_aborted) return aborted(deadline);
    const bool closed = error == http::error::end_of_stream || error == http::error::partial_message ||
                        error == asio::error::connection_reset || error == asio::error::broken_pipe ||
                        error == asio::error::eof;
    if (closed) return ended_early();
    if (error == http::error::body_limit) {
      return fail(Errc::Failed, "the answer on " + name_ + " is larger than " + format_bytes(kMaxAnswer));
    }
    if (error.category() == http::make_error_code(http::error::end_of_stream).category()) {
      return fail(Errc::Failed, "the answer on " + name_ + " is not HTTP (" + error.message() + ")",
                  "is it spark-staged's socket?");
    }
    return fail(Errc::Unavailable, "talking to spark-staged on " + name_ + ": " + error.message(),
                kLookAtDaemon);
  }

  const std::string& name_;
  const ClientDeadlines& deadlines_;
  const StopFlag* stop_;  // null: nothing interrupts it
  bool stopped_ = false;
  asio::io_context context_{1};
  Stream::socket socket_;
  beast::flat_buffer buffer_;
};

// Hands out the whole lines in `text` and removes them; false when the sink has enough.
bool drain_lines(std::string& text, const LineSink& sink) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (!line.empty() && !sink(line)) return false;
  }
  text.erase(0, begin);
  return true;
}

class UnixClient final : public Client {
 public:
  UnixClient(std::string socket, const StopFlag& stop, ClientDeadlines deadlines)
      : socket_(std::move(socket)), stop_(stop), deadlines_(deadlines) {}

  Result<Answer> send(const Request& request) override {
    const bool is_long = request.patience > Duration::zero();
    Exchange exchange(socket_, deadlines_, is_long ? &stop_ : nullptr);
    if (auto sent = exchange.open_and_send(request); !sent)
      return silent_is_unavailable(std::move(sent.error()));
    Parser parser;
    parser.body_limit(kMaxAnswer);
    const Duration patience = is_long ? request.patience : deadlines_.answer;
    if (auto got = exchange.read_rest(parser, patience); !got)
      return silent_is_unavailable(std::move(got.error()));
    return whole(parser);
  }

  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    Exchange exchange(socket_, deadlines_, &stop_);
    if (auto sent = exchange.open_and_send(request); !sent) return sent.take_error();
    Parser parser;
    parser.eager(true);
    parser.body_limit(boost::none);
    if (auto got = exchange.read_header(parser); !got) return got.take_error();
    if (parser.get().result() != http::status::ok) {
      if (auto got = exchange.read_rest(parser, deadlines_.answer); !got) return got.take_error();
      return whole(parser);
    }
    for (;;) {
      if (!drain_lines(parser.get().body(), sink)) return Answer{200, {}, server_of(parser)};
      if (parser.is_done()) return exchange.ended_early();
      if (parser.get().body().size() > kMaxLine) {
        return fail(Errc::Failed, "an event on " + socket_ + " is longer than " + format_bytes(kMaxLine));
      }
      if (auto got = exchange.read_some(parser, silence); !got) return got.take_error();
    }
  }

 private:
  static std::string server_of(const Parser& parser) {
    return std::string(parser.get()[http::field::server]);
  }

  static Answer whole(Parser& parser) {
    return {parser.get().result_int(), std::move(parser.get().body()), server_of(parser)};
  }

  static tl::unexpected<Error> silent_is_unavailable(Error error) {
    if (error.kind == Errc::TimedOut) error.kind = Errc::Unavailable;
    return fail(std::move(error));
  }

  const std::string socket_;
  const StopFlag& stop_;
  const ClientDeadlines deadlines_;
};

}  // namespace

std::unique_ptr<Client> make_unix_client(std::string socket, const StopFlag& stop,
                                         ClientDeadlines deadlines) {
  return std::make_unique<UnixClient>(std::move(socket), stop, deadlines);
}

}  // namespace spark::cli
