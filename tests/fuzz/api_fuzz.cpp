// Whatever a caller sends, the socket answers in HTTP or closes, and what the daemon makes of a staging is
// within bounds.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/text.hpp"
#include "daemon/api/server.hpp"
#include "daemon/service/staging_request.hpp"

namespace {

namespace asio = boost::asio;
using spark::api::Answer;
using spark::api::Request;

void require(bool holds) {
  if (!holds) std::abort();
}

// As the daemon reads it, without staging anything.
asio::awaitable<Answer> answer(Request request) {
  Answer answer;
  const auto wanted = spark::read_staging(request);
  if (!wanted) co_return spark::api::error_answer(wanted.error());
  require(!wanted->lease || wanted->lease->count() > 0);
  require(!spark::printable(spark::join(request.path, "/")).empty() || request.path.empty());
  answer.body = spark::json::object{{"datasets", wanted->datasets.size()}};
  co_return answer;
}

class Api {
 public:
  Api() : socket_("/tmp/spark-api-fuzz-" + std::to_string(::getpid())) {
    spark::api::Limits limits;
    limits.body = limits.header = 4096;
    auto made = spark::api::Server::listen(context_.get_executor(), socket_, "no-such-group", answer, limits);
    require(made.has_value());
    server_ = std::move(*made);
    server_->start();
  }
  ~Api() {
    server_->stop();
    context_.restart();
    context_.poll();
  }

  // All that comes back until the server closes.
  std::string exchange(std::span<const std::uint8_t> bytes) {
    asio::local::stream_protocol::socket client(context_);
    client.connect(asio::local::stream_protocol::endpoint(socket_.native()));
    std::string received;
    char part[4096];
    bool is_open = true;
    std::function<void()> read = [&] {
      client.async_read_some(asio::buffer(part), [&](boost::system::error_code error, std::size_t size) {
        received.append(part, size);
        is_open = !error;
        if (is_open) read();
      });
    };
    read();
    asio::async_write(client, asio::buffer(bytes.data(), bytes.size()),
                      [&](boost::system::error_code, std::size_t) {
                        boost::system::error_code ignored;
                        client.shutdown(asio::socket_base::shutdown_send, ignored);
                      });
    context_.restart();
    while (is_open) context_.run_one();
    client.close();
    context_.poll();
    return received;
  }

 private:
  asio::io_context context_;
  std::filesystem::path socket_;
  std::shared_ptr<spark::api::Server> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Api api;
  const std::string received = api.exchange({data, size});
  require(received.empty() || received.starts_with("HTTP/1."));
  return 0;
}
