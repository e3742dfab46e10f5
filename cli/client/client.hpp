// The seam to the daemon: one HTTP request at a time, with a deadline on everything.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"

namespace spark::cli {

inline constexpr char kDefaultSocket[] = "/run/spark-stage/api.sock";

struct Request {
  std::string method = "GET";
  std::string target;  // "/v1/status"; names in it are percent-encoded
  std::string body;    // JSON, or empty
  // Longest time until the whole answer, for one that takes the daemon long; 0 means the client's. With it
  // the client's stop flag ends the request.
  Duration patience{};
};

// An answer that came whole, whatever its status.
struct Answer {
  unsigned status = 0;
  std::string body;
  std::string server{};  // who answered, as in HTTP's header: "spark-staged/0.2.0"
};

// Takes one line without its end; false: enough, stop reading.
using LineSink = std::function<bool(std::string_view)>;

class Client {
 public:
  virtual ~Client() = default;

  // Unavailable: no daemon behind the socket, or it is silent. Denied: the socket can't be opened by this
  // user.
  virtual Result<Answer> send(const Request& request) = 0;

  // Gives a 200 answer's lines to `sink` until it has enough; any other answer is returned whole.
  // Unavailable: the connection broke, or the stream ended before the sink had enough. TimedOut: no byte for
  // `silence`. Cancelled: the stop flag was set.
  virtual Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) = 0;
};

struct ClientDeadlines {
  Duration connect{3'000};
  Duration answer{10'000};  // from the request to the whole answer, or to a stream's first byte
};

// HTTP/1.1 over a Unix socket; a connection for each request. `stop` ends streams and requests
// with a patience of their own, never another request.
std::unique_ptr<Client> make_unix_client(std::string socket, const StopFlag& stop,
                                         ClientDeadlines deadlines = {});

}  // namespace spark::cli
