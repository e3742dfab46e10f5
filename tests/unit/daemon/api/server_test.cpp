#include "daemon/api/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/support/run_on.hpp"

namespace spark::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    char name[] = "/tmp/spark-api-XXXXXX";
    folder = ::mkdtemp(name);
    socket = folder / "run/api.sock";
  }
  ~ServerTest() override {
    if (server) server->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(50));
    std::filesystem::remove_all(folder);
  }
  void listen() {
    auto made = Server::listen(context.get_executor(), socket, "no-such-group",
                               [this](Request request) { return handle(std::move(request)); });
    ASSERT_TRUE(made) << made.error().message();
    server = std::move(*made);
    server->start();
  }
  asio::awaitable<Answer> handle(Request request) {
    last = request;
    Answer answer;
    answer.body = json::object{{"method", request.method}};
    if (request.path == std::vector<std::string>{"throw"}) throw std::runtime_error("broken handler");
    if (request.path == std::vector<std::string>{"events"}) {
      answer.events = [count = 0]() mutable -> asio::awaitable<EventLine> {
        if (count == 3) co_return nullptr;
        co_return std::make_shared<const std::string>("{\"n\":" + std::to_string(++count) + "}\n");
      };
    }
    co_return answer;
  }

  // Sends raw bytes and reads until the end (or for a minute), while the loop runs.
  std::string exchange(const std::string& bytes) {
    std::string received;
    bool done = false;
    std::thread client([&] {
      const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket.c_str());
      timeval patience{60, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        char buffer[4096];
        for (ssize_t got; (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
          received.append(buffer, static_cast<std::size_t>(got));
        }
      }
      ::close(fd);
      done = true;
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(70);
    while (!done && std::chrono::steady_clock::now() < end) {
      context.restart();
      context.run_for(std::chrono::milliseconds(5));
    }
    client.join();
    return received;
  }
  std::string get(const std::string& path) {
    return exchange("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  boost::asio::io_context context;
  std::filesystem::path folder, socket;
  std::shared_ptr<Server> server;
  std::optional<Request> last;
};

TEST_F(ServerTest, AnswersWithJsonAndIdentifiesTheCaller) {
  listen();
  const std::string answer = get("/v1/volumes/a%2Fb");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr(R"({"method":"GET"})"));
  ASSERT_TRUE(last);
  EXPECT_THAT(last->path, ElementsAre("v1", "volumes", "a/b"));
  EXPECT_EQ(last->caller.pid, ::getpid());
  EXPECT_TRUE(last->caller.may_change) << "the daemon's own user";
}

TEST_F(ServerTest, TheSocketIsInaccessibleToOtherUsers) {
  listen();
  struct stat info {};
  ASSERT_EQ(::stat(socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

TEST_F(ServerTest, StreamsEventsAsLines) {
  listen();
  const std::string answer = get("/events");
  EXPECT_THAT(answer, HasSubstr("application/x-ndjson"));
  EXPECT_THAT(answer, HasSubstr("{\"n\":1}\n"));
  EXPECT_THAT(answer, HasSubstr("{\"n\":3}\n"));
  EXPECT_THAT(answer, testing::EndsWith("0\r\n\r\n"));
}

TEST_F(ServerTest, AnExceptionInAHandlerIsAnsweredAndTheServerContinues) {
  listen();
  EXPECT_THAT(get("/throw"), HasSubstr("broken handler"));
  EXPECT_THAT(get("/fine"), HasSubstr("200 OK"));
}

TEST_F(ServerTest, ABodyThatIsNotAJsonObjectIsABadRequest) {
  listen();
  EXPECT_THAT(exchange("POST /x HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
              HasSubstr("400 Bad Request"));
}

TEST_F(ServerTest, ABodyOverTheLimitIsRefused) {
  listen();
  EXPECT_THAT(exchange("POST /x HTTP/1.1\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\nx"),
              HasSubstr("413"));
}

TEST_F(ServerTest, AClientThatAsksBeforeItsBodyIsToldToSendIt) {
  listen();
  const std::string answer = exchange(
      "POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

TEST_F(ServerTest, GarbageIsCutOffAndTheNextClientIsServed) {
  listen();
  exchange(std::string(40'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(get("/fine"), HasSubstr("200 OK"));
}

TEST_F(ServerTest, ARunningDaemonsSocketIsNotTakenOver) {
  listen();
  const auto second = Server::listen(context.get_executor(), socket, "no-such-group", {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Errc::Unavailable);
  EXPECT_THAT(second.error().what, HasSubstr("another spark-staged"));
}

TEST_F(ServerTest, AStaleSocketOfAKilledDaemonIsReplaced) {
  std::filesystem::create_directories(socket.parent_path());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  ASSERT_TRUE(std::filesystem::exists(socket));
  listen();
  EXPECT_THAT(get("/fine"), HasSubstr("200 OK"));
}

TEST_F(ServerTest, AFileInThePlaceOfTheSocketIsKept) {
  const std::filesystem::path file = folder / "spark-stage.yaml";
  std::ofstream(file) << "version: 1\n";
  const auto made = Server::listen(context.get_executor(), file, "no-such-group", {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Errc::Refused) << "systemd does not try again after a bad command line";
  EXPECT_THAT(made.error().message(),
              HasSubstr("no socket - remove it, or give another path: --socket PATH"));
  EXPECT_EQ(std::filesystem::file_size(file), 11U);
}

TEST_F(ServerTest, AnEmptyFolderInThePlaceOfTheSocketGoesAndAnotherStays) {
  std::filesystem::create_directories(socket);
  listen();
  EXPECT_TRUE(Server::is_answered(socket));
  const std::filesystem::path full = folder / "full";
  std::filesystem::create_directories(full / "inner");
  EXPECT_FALSE(Server::listen(context.get_executor(), full, "no-such-group", {}));
  EXPECT_TRUE(std::filesystem::exists(full / "inner"));
}

TEST_F(ServerTest, APathThatNoSocketCanHaveIsRefused) {
  for (const std::string& path : {std::string(), folder.native() + "/" + std::string(120, 'a')}) {
    EXPECT_FALSE(Server::is_answered(path));
    const auto made = Server::listen(context.get_executor(), path, "no-such-group", {});
    ASSERT_FALSE(made) << path;
    EXPECT_EQ(made.error().kind, Errc::Invalid);
  }
}

TEST_F(ServerTest, TheSocketOfALaterDaemonIsKept) {
  listen();
  const auto earlier = server;
  std::filesystem::remove(socket);
  listen();
  earlier->stop();
  EXPECT_THAT(get("/fine"), HasSubstr("200 OK"));
}

TEST(DecodePath, RefusesBadEscapes) {
  EXPECT_FALSE(decode_path("/a%2"));
  EXPECT_FALSE(decode_path("/a%zz"));
  EXPECT_THAT(decode_path("/a%41/?q=1").value(), ElementsAre("aA"));
}

TEST(ErrorAnswer, EachErrorKindHasItsHttpStatus) {
  EXPECT_EQ(error_answer({Errc::NotFound, "x", ""}).status, 404u);
  EXPECT_EQ(error_answer({Errc::NoSpace, "x", ""}).status, 507u);
  EXPECT_EQ(error_answer({Errc::Denied, "x", ""}).status, 403u);
}

}  // namespace
}  // namespace spark::api
